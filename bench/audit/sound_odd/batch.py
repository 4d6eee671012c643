"""A price list with two batch tools: one applies what is valid and reports the rest, the other is all or nothing."""

START = {"tea": (320, 40), "coffee": (540, 25), "cocoa": (410, 0), "mate": (275, 12)}
MOST = 100_000
LIMIT = 10  # entries of a batch

# Each: what is asked for, the articles that differ at the end (price, stock), a solution.
JOBS = [
    ("Set the price of tea to 350.", {"tea": (350, 40)}, [("set_prices", [("tea", 350)])]),
    (
        "Set these prices: tea 300, chicory 200, mate 290. Articles that do not exist are left out.",
        {"tea": (300, 40), "mate": (290, 12)},
        [("set_prices", [("tea", 300), ("chicory", 200), ("mate", 290)])],
    ),
    (
        "Move 5 pieces from coffee to cocoa (it was a wrong booking).",
        {"coffee": (540, 20), "cocoa": (410, 5)},
        [("book", [("coffee", -5), ("cocoa", 5)])],
    ),
    (
        "Book 30 pieces of tea and all 12 of mate as sold, and 8 of cocoa as arrived.",
        {"tea": (320, 10), "mate": (275, 0), "cocoa": (410, 8)},
        [("book", [("tea", -30), ("mate", -12), ("cocoa", 8)])],
    ),
    (
        "Cocoa costs 395 from now on, and 60 pieces of it have arrived.",
        {"cocoa": (395, 60)},
        [("set_prices", [("cocoa", 395)]), ("book", [("cocoa", 60)])],
    ),
    (
        "Raise all four prices by 10.",
        {"tea": (330, 40), "coffee": (550, 25), "cocoa": (420, 0), "mate": (285, 12)},
        [("set_prices", [("tea", 330), ("coffee", 550), ("cocoa", 420), ("mate", 285)])],
    ),
    (
        "20 pieces of tea arrived, and then 50 were sold: book both. Then set its price to 310.",
        {"tea": (310, 10)},
        [("book", [("tea", 20), ("tea", -50)]), ("set_prices", [("tea", 310)])],
    ),
]


def schema(key="", low=0, text=""):
    if not key:
        return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    article = {"type": "string", "description": "Name of the article."}
    number = {"type": "integer", "minimum": low, "maximum": MOST, "description": text}
    entry = {"type": "object", "properties": {"article": article, key: number}, "required": ["article", key]}
    entry["additionalProperties"] = False
    entries = {"type": "array", "items": entry, "minItems": 1, "maxItems": LIMIT, "description": "In this order."}
    return {
        "type": "object",
        "properties": {"entries": entries},
        "required": ["entries"],
        "additionalProperties": False,
    }


TOOLS = {
    "articles": ("List all articles with price in cents and stock.", schema()),
    "set_prices": (
        (
            "Set prices. Each entry counts for itself: valid ones are applied even if others are not. If there is an "
            "invalid one, the answer is an error that lists what is applied and what is refused."
        ),
        schema("price", 1, "The new price in cents."),
    ),
    "book": (
        (
            "Book changes of the stock, in their order. All or nothing: if one entry is refused, none is applied. An "
            "entry is refused if the article is unknown or its stock would fall below 0."
        ),
        schema("change", -MOST, "Pieces that arrive; negative for pieces that leave."),
    ),
}


class Prices:
    """A session."""

    def tasks(self):
        return [{"id": f"prices-{n}", "n": n} for n in range(len(JOBS))]

    def tools(self):
        return [{"name": name, "description": text, "parameters": spec} for name, (text, spec) in TOOLS.items()]

    def reset(self, task, seed):
        self.n = task["n"]
        self.price = {name: price for name, (price, _) in START.items()}
        self.stock = {name: stock for name, (_, stock) in START.items()}
        return f"{JOBS[self.n][0]} Prices are in cents. You are judged by prices and stock at the end."

    def call(self, name, arguments):
        if name not in TOOLS:
            return {"error": f"no tool {name!r}; there are {', '.join(TOOLS)}"}
        wanted = TOOLS[name][1]["required"]
        if [*arguments] != wanted:
            return {"error": f"{name} takes exactly {wanted}, got {sorted(arguments)}"}
        if name == "articles":
            return self.state()
        key, low = ("price", 1) if name == "set_prices" else ("change", -MOST)
        entries = arguments["entries"]
        if wrong := self._wrong(entries, key, low):
            return {"error": f"{wrong}; nothing is applied"}
        return self._set_prices(entries) if name == "set_prices" else self._book(entries)

    @staticmethod
    def _wrong(entries, key, low):
        if type(entries) is not list or not 1 <= len(entries) <= LIMIT:
            return f"entries must be a list of 1 to {LIMIT} entries"
        for one in entries:
            if type(one) is not dict or set(one) != {"article", key} or type(one["article"]) is not str:
                return f"an entry has an article, a text, and {key}; got {one!r}"
            if type(one[key]) is not int or not low <= one[key] <= MOST:
                return f"{key} must be an integer from {low} to {MOST}"
        return ""

    def _set_prices(self, entries):
        applied = [one["article"] for one in entries if one["article"] in self.price]
        refused = [f"unknown article {one['article']!r}" for one in entries if one["article"] not in self.price]
        self.price.update({one["article"]: one["price"] for one in entries if one["article"] in self.price})
        if refused:
            return {"error": f"{len(refused)} of {len(entries)} refused", "refused": refused, "applied": applied}
        return {"applied": applied}

    def _book(self, entries):
        stock = dict(self.stock)
        for one in entries:
            article = one["article"]
            if article not in stock:
                return {"error": f"unknown article {article!r}; nothing is booked"}
            if stock[article] + one["change"] < 0:
                return {"error": f"{article} has only {stock[article]}; nothing is booked"}
            stock[article] += one["change"]
        self.stock = stock
        return {"stock": dict(stock)}

    def state(self):
        return {name: {"price": self.price[name], "stock": self.stock[name]} for name in START}

    def oracle(self, task):
        keys = {"set_prices": "price", "book": "change"}
        return [
            [name, {"entries": [{"article": article, keys[name]: value} for article, value in entries]}]
            for name, entries in JOBS[task["n"]][2]
        ]

    def score(self):
        return float({name: (self.price[name], self.stock[name]) for name in START} == START | JOBS[self.n][1])
