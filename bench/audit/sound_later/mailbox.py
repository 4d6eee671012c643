"""A mailbox: opening a message marks it as read, and a draft can be edited until it is sent."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Address = Literal["lena@example.org", "paul@example.org", "rita@example.org"]
Subject = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
Body = Annotated[str, msgspec.Meta(max_length=500)]


class Message(msgspec.Struct):
    sender: str
    subject: str
    body: str
    unread: bool = True


class Mail(msgspec.Struct):
    to: str
    subject: str
    body: str


INBOX = {
    "M1": Message("lena@example.org", "Key of the shed", "The code of the shed is 7714."),
    "M2": Message("paul@example.org", "Lunch", "Shall we eat at 12:30 on Friday?"),
    "M3": Message("lena@example.org", "Gas meter", "Mine shows 48213. What does yours show?", unread=False),
    "M4": Message("rita@example.org", "Train", "My train arrives at 17:52 on platform 4."),
    "M5": Message("paul@example.org", "Bike", "The lock of the bike has the number 3906.", unread=False),
}


class Mailbox(qn.State):
    inbox: qn.Table[Message]
    drafts: qn.Table[Mail]
    sent: qn.Table[Mail]

    @qn.tool
    def list_inbox(
        self,
        unread_only: bool = False,  # noqa: FBT001, FBT002 -- a model passes arguments by name
    ) -> list[dict[str, str | bool]]:
        """List messages without their bodies, the oldest first.

        Args:
            unread_only: Leave out messages that are read.
        """
        return [
            {"id": key, "from": row.sender, "subject": row.subject, "unread": row.unread}
            for key, row in self.inbox.items()
            if row.unread or not unread_only
        ]

    @qn.tool
    def open_message(self, message: str) -> Message:
        """Open a message and mark it as read; the answer shows it as it is now.

        Args:
            message: Its id.
        """
        return self._mark(message, unread=False)

    @qn.tool
    def mark_unread(self, message: str) -> str:
        """Mark a message as unread.

        Args:
            message: Its id.
        """
        self._mark(message, unread=True)
        return f"{message} is unread"

    def _mark(self, key: str, *, unread: bool) -> Message:
        if key not in self.inbox:
            raise qn.ToolError(f"unknown message {key!r}")
        row = self.inbox[key]
        row.unread = unread
        self.inbox[key] = row
        return row

    @qn.tool
    def create_draft(self, to: Address, subject: Subject, body: Body) -> str:
        """Write a draft; returns its id. Ids count up and are not used again.

        Args:
            to: Address of a contact.
            subject: 1 to 80 characters.
            body: At most 500 characters.
        """
        key = self.new_id("D")
        self.drafts[key] = Mail(to, subject, body)
        return key

    def _draft(self, key: str) -> Mail:
        if key in self.sent:
            raise qn.ToolError(f"{key} was sent and cannot be changed")
        if key not in self.drafts:
            raise qn.ToolError(f"unknown draft {key!r}")
        return self.drafts[key]

    @qn.tool
    def edit_draft(self, draft: str, subject: Subject | None = None, body: Body | None = None) -> Mail:
        """Replace the subject or the body of a draft; what is left out stays. Returns the draft.

        Args:
            draft: Its id.
            subject: The new subject.
            body: The new body.
        """
        row = self._draft(draft)
        row.subject, row.body = row.subject if subject is None else subject, row.body if body is None else body
        self.drafts[draft] = row
        return row

    @qn.tool
    def send_draft(self, draft: str) -> str:
        """Send a draft. It keeps its id, leaves the drafts, and cannot be changed any more.

        Args:
            draft: Its id.
        """
        self.sent[draft] = self._draft(draft)
        del self.drafts[draft]
        return f"{draft} is sent"

    @qn.tool
    def delete_draft(self, draft: str) -> str:
        """Delete a draft for good.

        Args:
            draft: Its id.
        """
        self._draft(draft)
        del self.drafts[draft]
        return f"{draft} is deleted"

    @qn.tool
    def list_mail(self) -> dict[str, dict[str, Mail]]:
        """List the drafts and the mail that was sent, by id."""
        return {"drafts": dict(self.drafts.items()), "sent": dict(self.sent.items())}


Call = tuple[str, dict[str, object]]


def send(number: int, to: str, body: str) -> list[Call]:
    key = f"D{number}"
    return [
        ("create_draft", {"to": f"{to}@example.org", "subject": "Hello", "body": body}),
        ("send_draft", {"draft": key}),
    ]


def read(*keys: str) -> list[Call]:
    return [("open_message", {"message": key}) for key in keys]


# Each: what is asked, the mail that must be sent, the ids that must be unread at the end, a solution.
Job = tuple[str, list[tuple[str, str]], set[str], list[Call]]
JOBS: list[Job] = [
    ("Send Rita the code of the shed.", [("rita", "7714")], {"M2", "M4"}, [*read("M1"), *send(1, "rita", "7714")]),
    ("Send Paul the platform of Rita's train.", [("paul", "4")], {"M1", "M2"}, [*read("M4"), *send(1, "paul", "4")]),
    (
        "Send Lena the number of the bike's lock.",
        [("lena", "3906")],
        {"M1", "M2", "M4"},
        [*read("M5"), *send(1, "lena", "3906")],
    ),
    ("Read all messages. Send nothing.", [], set(), read("M1", "M2", "M4")),
    (
        "Mark both messages of Lena as unread. Send nothing.",
        [],
        {"M1", "M2", "M3", "M4"},
        [("mark_unread", {"message": "M3"})],
    ),
    (
        "Send Lena the time at which Rita's train arrives, and Rita the reading of Lena's gas meter.",
        [("lena", "17:52"), ("rita", "48213")],
        {"M1", "M2"},
        [*read("M4", "M3"), *send(1, "lena", "17:52"), *send(2, "rita", "48213")],
    ),
    (
        "Send Rita the time of Paul's lunch, but leave his message unread.",
        [("rita", "12:30")],
        {"M1", "M2", "M4"},
        [*read("M2"), *send(1, "rita", "12:30"), ("mark_unread", {"message": "M2"})],
    ),
]
RULES = (
    "Subjects are free; the body of a mail is only the number or time that is asked for, as it stands in the message. "
    "Leave no draft behind. Unless the task says otherwise, a message that you need for it is read at the end, and "
    "any other message stays as it is: mark it unread again if you opened it."
)


def tasks(split: str) -> list[qn.Task[Mailbox]]:
    world = Mailbox(inbox=qn.Table(Message, INBOX), drafts=qn.Table(Mail), sent=qn.Table(Mail))
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULES}",
            start=world,
            truth={"sent": sorted([f"{to}@example.org", body] for to, body in sent), "unread": sorted(unread)},
            solution=tuple(calls),
        )
        for n, (prompt, sent, unread, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Mailbox]) -> qn.Score:
    found = {
        "sent": sorted([row.to, row.body.strip()] for row in view.state.sent.values()),
        "unread": sorted(key for key, row in view.state.inbox.items() if row.unread),
    }
    right = found == view.task.truth and not len(view.state.drafts)
    return qn.Score(float(right), f"found {found}, {len(view.state.drafts)} drafts")


env = qn.Environment(
    "mailbox", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Mailbox, splits=("test",)
)
