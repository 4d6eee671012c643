"""A notice board. On some days all posts keep its rule: doing nothing is right then, and the prompt says so."""

POSTS = {
    "p1": "Bicycle for sale, 40 euros, call Ida.",
    "p2": "Choir on thursday, all are welcome!",
    "p3": "LOST: a grey cat. It answers to Igor.",
    "p4": "Sofa to give away, 0 euros.",
    "p5": "Cheap phones, 15 euros each",
    "p6": "The lift is out of order until monday.",
    "p7": "Who has seen my euros? I lost a purse.",
    "p8": "Piano lessons, 20 euros an hour.",
}
SALES = ("p1", "p4", "p5", "p8")  # posts that name a number of euros

# Each: the posts of a day.
DAYS = {
    "monday": ["p1", "p2", "p3"],
    "tuesday": ["p2", "p3", "p6", "p7"],
    "wednesday": ["p4", "p5", "p6", "p8"],
    "thursday": ["p7", "p8", "p1", "p2"],
    "friday": ["p3", "p6", "p2"],
    "saturday": ["p5", "p3", "p7"],
    "sunday": ["p1", "p4", "p5", "p8"],
}


class Board:
    """A session."""

    refusal_ok = True
    """On tuesday and on friday no post breaks the rule."""

    def tasks(self):
        return [{"id": day} for day in DAYS]

    def tools(self):
        post = {"type": "string", "enum": [*POSTS], "description": "Id of a post of the day."}
        nothing = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        one = {"type": "object", "properties": {"post": post}, "required": ["post"], "additionalProperties": False}
        return [
            {
                "name": "posts",
                "description": "Read the posts of the day, and which are flagged.",
                "parameters": nothing,
            },
            {
                "name": "flag",
                "description": "Flag a post of the day; refused if it is flagged. Returns the flagged ones, sorted.",
                "parameters": one,
            },
            {
                "name": "unflag",
                "description": "Take the flag from a post; refused if it has none. Returns the flagged ones, sorted.",
                "parameters": one,
            },
        ]

    def reset(self, task, seed):
        self.day, self.flagged = task["id"], []
        return (
            f"It is {self.day}. Flag each post on today's board that names a number of euros, also 0, in digits. It "
            "may be that no post does; then leave the board as it is, and you are done. No post is flagged yet. You "
            "are judged by the flags at the end: your reward is 1 if exactly the right posts are flagged, else 0."
        )

    def call(self, name, arguments):
        if name not in ("posts", "flag", "unflag"):
            return {"error": f"no tool {name!r}; there are posts, flag and unflag"}
        if [*arguments] != ([] if name == "posts" else ["post"]):
            return {"error": f"{name} takes {'nothing' if name == 'posts' else 'post'}, got {sorted(arguments)}"}
        if name == "posts":
            return [{"post": post, "text": POSTS[post], "flagged": post in self.flagged} for post in DAYS[self.day]]
        post = arguments["post"]
        if type(post) is not str or post not in DAYS[self.day]:
            return {"error": f"no post {post!r} today; there are {', '.join(DAYS[self.day])}"}
        if (post in self.flagged) == (name == "flag"):
            return {"error": f"{post} is {'already' if name == 'flag' else 'not'} flagged"}
        self.flagged = sorted({*self.flagged} ^ {post})
        return [*self.flagged]

    def state(self):
        return {"day": self.day, "flagged": [*self.flagged]}

    def oracle(self, task):
        return [["flag", {"post": post}] for post in DAYS[task["id"]] if post in SALES]

    def score(self):
        return float(self.flagged == sorted(post for post in DAYS[self.day] if post in SALES))
