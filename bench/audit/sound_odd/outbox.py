"""E-mail with drafts and threads; a mail leaves two minutes after it is sent, and until then it can be taken back."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Thread = Literal["lunch", "invoice", "garden"]
Person = Literal["ana", "ben", "cleo"]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
Minutes = Annotated[int, msgspec.Meta(ge=1, le=30)]
DELAY = 2  # minutes


class Mail(msgspec.Struct):
    id: str
    thread: str
    to: str
    text: str
    leaves: int | None = None
    """Minute at which it leaves or has left; None for a draft."""


class Shown(msgspec.Struct):
    id: str
    who: str
    text: str
    status: Literal["received", "draft", "leaving", "sent"]


RECEIVED = {
    "lunch": [Shown("R1", "from ana", "Where shall we meet on friday?", "received")],
    "invoice": [Shown("R2", "from ben", "Have you paid invoice 4471?", "received")],
    "garden": [
        Shown("R3", "from cleo", "Are the roses for you?", "received"),
        Shown("R4", "from ben", "She means the red ones.", "received"),
    ],
}


class Mailbox(qn.State):
    mails: list[Mail]

    def _minute(self) -> int:
        return int(self.clock.now) // 60

    def status(self, mail: Mail) -> Literal["draft", "leaving", "sent"]:
        if mail.leaves is None:
            return "draft"
        return "leaving" if mail.leaves > self._minute() else "sent"

    def _mail(self, mail: str, wanted: str) -> Mail:
        for one in self.mails:
            if one.id == mail:
                if (status := self.status(one)) != wanted:
                    raise qn.ToolError(f"{mail} is not {wanted}, it is {status}")
                return one
        raise qn.ToolError(f"no mail {mail!r} of yours")

    @qn.tool
    def read(self, thread: Thread) -> list[Shown]:
        """Read a thread: what was received, then your own mails with their status.

        The status is draft, leaving (sent less than two minutes ago) or sent.

        Args:
            thread: The thread.
        """
        mine = [Shown(one.id, f"to {one.to}", one.text, self.status(one)) for one in self.mails if one.thread == thread]
        return RECEIVED[thread] + mine

    @qn.tool
    def draft(self, thread: Thread, to: Person, text: Text) -> Mail:
        """Write a draft; it is not sent, so it has no minute at which it leaves.

        Args:
            thread: The thread to which it belongs.
            to: Who shall receive it.
            text: 1 to 80 characters.
        """
        self.mails.append(Mail(self.new_id("M"), thread, to, text))
        return self.mails[-1]

    @qn.tool
    def edit(self, mail: str, text: Text) -> Mail:
        """Replace the text of a draft.

        Args:
            mail: Its id, such as M1.
            text: The new text, 1 to 80 characters.
        """
        found = self._mail(mail, "draft")
        found.text = text
        return found

    @qn.tool
    def discard(self, mail: str) -> str:
        """Discard a draft for good.

        Args:
            mail: Its id, such as M1.
        """
        self.mails.remove(self._mail(mail, "draft"))
        return f"{mail} is discarded"

    @qn.tool
    def send(self, mail: str) -> str:
        """Send a draft. It leaves after two minutes; time passes only in `wait`.

        Args:
            mail: Its id, such as M1.
        """
        self._mail(mail, "draft").leaves = self._minute() + DELAY
        return f"{mail} leaves in {DELAY} minutes"

    @qn.tool
    def undo_send(self, mail: str) -> str:
        """Take back a mail that has not left yet; it is a draft again.

        Args:
            mail: Its id, such as M1.
        """
        self._mail(mail, "leaving").leaves = None
        return f"{mail} is a draft again"

    @qn.tool
    def wait(self, minutes: Minutes) -> str:
        """Let time pass.

        Args:
            minutes: 1 to 30.
        """
        self.clock.advance(60 * minutes)
        return f"minute {self._minute()}"


Call = tuple[str, dict[str, object]]
PAID, OLD = "invoice, ben: It is paid.", "garden, cleo: Yes"


def draft(thread: str, to: str, text: str) -> Call:
    return "draft", {"thread": thread, "to": to, "text": text}


def on(name: str, mail: str, **more: object) -> Call:
    return name, {"mail": mail, **more}


# Each: what is asked for, what is sent and what is draft at the end, a solution.
JOBS: list[tuple[str, list[str], list[str], list[Call]]] = [
    ("Answer ana in the thread lunch: 'At the pier'. The mail must be sent.", [PAID, "lunch, ana: At the pier"], [OLD],
     [draft("lunch", "ana", "At the pier"), on("send", "M3"), ("wait", {"minutes": 2})]),
    ("The invoice is not paid: the mail M1 to ben must not leave. Discard it.", [], [OLD],
     [on("undo_send", "M1"), on("discard", "M1")]),
    ("The text of M1 to ben must be 'It is paid since monday.' instead, and be sent.",
     ["invoice, ben: It is paid since monday."], [OLD],
     [on("undo_send", "M1"), on("edit", "M1", text="It is paid since monday."), on("send", "M1")]),
    ("Finish your draft M2 to cleo: its text is 'Yes, thank you'. Send it.", [PAID, "garden, cleo: Yes, thank you"], [],
     [on("edit", "M2", text="Yes, thank you"), on("send", "M2")]),
    ("Keep M1 to ben as a draft, with the text that it has.", [], [PAID, OLD], [on("undo_send", "M1")]),
    ("Write ben a draft in the thread lunch, 'Do you come too?', and do not send it.", [PAID],
     [OLD, "lunch, ben: Do you come too?"], [draft("lunch", "ben", "Do you come too?")]),
]  # fmt: skip
RULE = (
    "M1, 'It is paid.' to ben in the thread invoice, leaves in two minutes; M2, 'Yes' to cleo in the thread garden, is "
    "a draft. You are judged by your sent mails and your drafts at the end: thread, receiver and text, to the letter, "
    "in any order. A mail that is leaving at the end counts as sent. Change nothing else."
)


def mailbox() -> Mailbox:
    made = Mailbox(mails=[])
    made.draft("invoice", "ben", "It is paid.")
    made.draft("garden", "cleo", "Yes")
    made.send("M1")
    return made


def tasks(split: str) -> list[qn.Task[Mailbox]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULE}",
            start=mailbox(),
            truth={"sent": sorted(sent), "drafts": sorted(drafts)},
            solution=tuple(calls),
        )
        for n, (prompt, sent, drafts, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Mailbox]) -> qn.Score:
    found: dict[str, list[str]] = {"sent": [], "drafts": []}
    for one in view.state.mails:
        found["drafts" if one.leaves is None else "sent"].append(f"{one.thread}, {one.to}: {one.text}")
    found = {name: sorted(lines) for name, lines in found.items()}
    return qn.Score(float(found == view.task.truth), f"found {found}")


env = qn.Environment(
    "outbox", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Mailbox, splits=("test",)
)
