"""An archive whose reads differ by who is signed in; all may read the log of looks and refusals."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

User = Literal["guest", "clerk", "chief"]
Title = Literal["budget", "menu", "plan", "wages"]
Pin = Annotated[str, msgspec.Meta(pattern="^[0-9]{4}$", max_length=4)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
RANKS = ("guest", "clerk", "chief")
PINS = {"clerk": "5081", "chief": "2946"}


class Document(msgspec.Struct):
    level: User
    """The lowest rank that may see the text."""
    text: str


class Entry(msgspec.Struct):
    user: str
    what: str
    allowed: bool


START: dict[str, tuple[User, str]] = {
    "menu": ("guest", "soup"),
    "plan": ("clerk", "move in june"),
    "budget": ("clerk", "9000"),
    "wages": ("chief", "raise of 4 percent"),
}


class Archive(qn.State):
    documents: dict[str, Document]
    user: User = "guest"
    log: list[Entry] = []

    def _may(self, level: str, what: str) -> bool:
        """Tells if the user has a rank, and logs it."""
        allowed = RANKS.index(self.user) >= RANKS.index(level)
        self.log.append(Entry(self.user, what, allowed))
        return allowed

    def _demand(self, level: str, what: str) -> None:
        if not self._may(level, what):
            raise qn.ToolError(f"{self.user} may not {what}; it is logged")

    @qn.tool
    def sign_in(self, user: User, pin: Pin = "0000") -> str:
        """Switch to another user; each try is logged. The ranks are guest, clerk and chief, the chief is the highest.

        Args:
            user: Who you are from now on.
            pin: The user's PIN, four digits. A guest needs none, any is accepted.
        """
        right = user == "guest" or PINS[user] == pin
        self.log.append(Entry(self.user, f"sign in as {user}", right))
        if not right:
            raise qn.ToolError(f"that is not the PIN of {user}; you are still {self.user}; it is logged")
        self.user = user
        return f"you are {user}"

    @qn.tool
    def titles(self) -> dict[str, str]:
        """List the documents that the present user may see, with their levels. It is not logged."""
        rank = RANKS.index(self.user)
        return {title: one.level for title, one in self.documents.items() if RANKS.index(one.level) <= rank}

    @qn.tool
    def read(self, title: Title) -> str:
        """Read the text of a document. A user below its level gets the text "(hidden)" instead. It is logged.

        Args:
            title: Its title.
        """
        one = self.documents[title]
        return one.text if self._may(one.level, f"read {title}") else "(hidden)"

    @qn.tool
    def write(self, title: Title, text: Text) -> str:
        """Replace the text of a document; it needs the document's level, and clerk at least. It is logged.

        Args:
            title: Its title.
            text: The new text, 1 to 60 characters.
        """
        one = self.documents[title]
        self._demand("clerk" if one.level == "guest" else one.level, f"write {title}")
        one.text = text
        return f"{title} is written"

    @qn.tool
    def set_level(self, title: Title, level: User) -> str:
        """Set the lowest rank that may see a document; only the chief may. It is logged.

        Args:
            title: Its title.
            level: The rank.
        """
        self._demand("chief", f"set the level of {title}")
        self.documents[title].level = level
        return f"{title} is for {level} and above"

    @qn.tool
    def access_log(self) -> list[Entry]:
        """Read who did what, the oldest first, refusals too. All users may; reading the log is not logged."""
        return self.log


Call = tuple[str, dict[str, object]]
CLERK: Call = ("sign_in", {"user": "clerk", "pin": PINS["clerk"]})
CHIEF: Call = ("sign_in", {"user": "chief", "pin": PINS["chief"]})
OUT: Call = ("sign_in", {"user": "guest"})


def write(title: str, text: str) -> Call:
    return "write", {"title": title, "text": text}


def level(title: str, rank: str) -> Call:
    return "set_level", {"title": title, "level": rank}


def read(title: str) -> Call:
    return "read", {"title": title}


# Each: what is asked for, documents that change, who is signed in at the end, a solution.
JOBS: list[tuple[str, dict[str, tuple[User, str]], str, list[Call]]] = [
    ("Let the menu say 'pancakes'. You are the clerk, PIN 5081. Sign out at the end: be guest.",
     {"menu": ("guest", "pancakes")}, "guest", [CLERK, write("menu", "pancakes"), OUT]),
    ("Let all guests see the plan. You are the chief, PIN 2946, and stay so.", {"plan": ("guest", "move in june")},
     "chief", [CHIEF, level("plan", "guest")]),
    ("Copy the text of wages into budget. You are the chief, PIN 2946. Be guest at the end.",
     {"budget": ("clerk", "raise of 4 percent")}, "guest",
     [CHIEF, read("wages"), write("budget", "raise of 4 percent"), OUT]),
    ("As chief, PIN 2946, hide the budget from all others. As clerk, PIN 5081, write 'stay' into the plan; stay clerk.",
     {"budget": ("chief", "9000"), "plan": ("clerk", "stay")}, "clerk",
     [CHIEF, level("budget", "chief"), CLERK, write("plan", "stay")]),
    ("Copy the text of the plan into the menu for the guests. You are the clerk, PIN 5081. Be guest at the end.",
     {"menu": ("guest", "move in june")}, "guest",
     [CLERK, read("plan"), write("menu", "move in june"), OUT]),
    ("You are the clerk, PIN 5081. Just sign in, and change nothing.", {}, "clerk", [CLERK]),
]  # fmt: skip
RULE = (
    "You begin as guest. You are judged by the text and the level of each document and by who is signed in at the "
    "end: as asked, all other documents as they are. The log does not count."
)


def tasks(split: str) -> list[qn.Task[Archive]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULE}",
            start=Archive(documents={title: Document(rank, text) for title, (rank, text) in START.items()}),
            truth={"user": user, "documents": {title: [*row] for title, row in (START | changed).items()}},
            solution=tuple(calls),
        )
        for n, (prompt, changed, user, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Archive]) -> qn.Score:
    documents = {title: [one.level, one.text] for title, one in view.state.documents.items()}
    found = {"user": view.state.user, "documents": documents}
    return qn.Score(float(found == view.task.truth), f"found {found}")


env = qn.Environment(
    "archive", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Archive, splits=("test",)
)
