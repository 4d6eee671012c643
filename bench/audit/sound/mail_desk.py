"""Mailbox with threads: reading marks as read, the trash keeps threads, and changes of place or label can be undone."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng
from quintain.task import Call

ME, PAGE = "me@desk.example", 4
Folder = Literal["inbox", "archive", "trash", "sent"]
Text = Annotated[str, Meta(min_length=1, max_length=500)]
Address = Annotated[str, Meta(pattern=r"^[a-z0-9.]{1,30}@[a-z0-9.]{1,30}$")]
LABELS = ("urgent", "finance", "travel", "private")


class Message(msgspec.Struct):
    sender: str
    to: str
    text: str
    at: float


class Thread(msgspec.Struct):
    subject: str
    messages: list[Message]
    folder: Folder = "inbox"
    labels: list[str] = []
    unread: bool = True


class Undo(msgspec.Struct):
    """Folder and labels of a thread before a change."""

    thread: str
    folder: Folder
    labels: list[str]


class Mailbox(qn.State):
    threads: dict[str, Thread]
    undos: list[Undo] = []

    @qn.tool
    def list_threads(self, folder: Folder, page: Annotated[int, Meta(ge=1, le=100)] = 1) -> dict[str, object]:
        """List the threads of a folder, the one with the newest message first, four on a page.

        Args:
            folder: Name of the folder.
            page: Number of the page, from 1.
        """
        found = [(-one.messages[-1].at, key) for key, one in self.threads.items() if one.folder == folder]
        pages = max(1, -(-len(found) // PAGE))
        if page > pages:
            raise qn.ToolError(f"page {page} does not exist; pages: 1 to {pages}")
        keys = [key for _, key in sorted(found)[(page - 1) * PAGE : page * PAGE]]
        return {"total": len(found), "pages": pages, "threads": [self._row(key) for key in keys]}

    @qn.tool
    def search(self, text: Annotated[str, Meta(min_length=2, max_length=60)]) -> list[dict[str, object]]:
        """Find threads by a text in the subject, in a sender or in a message, in any letter case.

        Ordered by id; the trash is left out.

        Args:
            text: What to look for, 2 to 60 characters.
        """
        wanted, found = text.casefold(), list[str]()
        for key, one in self.threads.items():
            texts = [one.subject, *(part for message in one.messages for part in (message.sender, message.text))]
            if one.folder != "trash" and any(wanted in part.casefold() for part in texts):
                found.append(key)
        return [self._row(key) for key in sorted(found, key=lambda key: int(key[1:]))]

    @qn.tool
    def read_thread(self, thread: str) -> Thread:
        """Mark a thread as read and show it, the oldest message first. Times are seconds of the clock.

        Args:
            thread: Id of the thread.
        """
        found = self._thread(thread)
        found.unread = False
        return found

    @qn.tool
    def reply(self, thread: str, text: Text) -> str:
        """Send a reply to the sender of the newest message that is not from you. Sent mail cannot be undone.

        Args:
            thread: Id of the thread.
            text: Text, at most 500 characters.
        """
        found = self._thread(thread)
        others = [message.sender for message in found.messages if message.sender != ME]
        if not others:
            raise qn.ToolError(f"{thread} holds only your own messages, so it has no sender to reply to")
        self.clock.advance(1)
        found.messages.append(Message(ME, others[-1], text, self.clock.now))
        return f"sent to {others[-1]}"

    @qn.tool
    def forward(self, thread: str, to: Address) -> str:
        """Forward the newest message of a thread; returns the id of the new thread in the folder sent.

        Args:
            thread: Id of the thread.
            to: Address, such as ann@firm.example, in lower case.
        """
        found = self._thread(thread)
        self.clock.advance(1)
        message = Message(ME, to, found.messages[-1].text, self.clock.now)
        key = self.new_id("T")
        self.threads[key] = Thread(f"Fwd: {found.subject}", [message], folder="sent", unread=False)
        return key

    @qn.tool
    def label(self, thread: str, label: Literal["urgent", "finance", "travel", "private"]) -> str:
        """Put a label on a thread; a label that is there already stays, and nothing changes.

        Args:
            thread: Id of the thread.
            label: The label.
        """
        return self._change(thread, labels=sorted({*self._thread(thread).labels, label}))

    @qn.tool
    def unlabel(self, thread: str, label: Literal["urgent", "finance", "travel", "private"]) -> str:
        """Take a label off a thread; without that label nothing changes.

        Args:
            thread: Id of the thread.
            label: The label.
        """
        return self._change(thread, labels=[one for one in self._thread(thread).labels if one != label])

    @qn.tool
    def move(self, thread: str, folder: Literal["inbox", "archive", "trash"]) -> str:
        """Move a thread; the trash keeps threads until they are moved back. Sent threads stay where they are.

        Args:
            thread: Id of the thread.
            folder: Where to.
        """
        if self._thread(thread).folder == "sent":
            raise qn.ToolError(f"{thread} is in the folder sent, and sent threads cannot be moved")
        return self._change(thread, folder=folder)

    @qn.tool
    def undo(self) -> str:
        """Undo the newest change of a folder or a label that is not undone yet. Mail that was sent stays sent."""
        if not self.undos:
            raise qn.ToolError("no change is left to undo")
        last = self.undos.pop()
        thread = self.threads[last.thread]
        thread.folder, thread.labels = last.folder, last.labels
        return self._place(last.thread)

    def _thread(self, key: str) -> Thread:
        if key not in self.threads:
            raise qn.ToolError(f"no thread {key!r}; `list_threads` shows the ids")
        return self.threads[key]

    def _change(self, key: str, *, folder: Folder | None = None, labels: list[str] | None = None) -> str:
        thread = self._thread(key)
        before = Undo(key, thread.folder, list(thread.labels))
        thread.folder, thread.labels = folder or thread.folder, thread.labels if labels is None else labels
        if (before.folder, before.labels) != (thread.folder, thread.labels):
            self.undos.append(before)
        return self._place(key)

    def _place(self, key: str) -> str:
        thread = self.threads[key]
        return f"{key} is in {thread.folder}, labels: {', '.join(thread.labels) or 'none'}"

    def _row(self, key: str) -> dict[str, object]:
        one = self.threads[key]
        return {"id": key, "subject": one.subject, "from": one.messages[0].sender, "folder": one.folder,
                "labels": one.labels, "unread": one.unread, "messages": len(one.messages)}  # fmt: skip


SENDERS = ("ines@north.example", "kofi@south.example", "lars@west.example")
SUBJECTS = ("Invoice", "Offer", "Site visit", "Newsletter", "Contract", "Newsletter", "Photos", "Agenda", "Newsletter")


def mailbox(rng: Rng) -> Mailbox:
    """Returns nine threads with one or two messages each; the last one is archived."""
    box = Mailbox(threads={})
    for n, subject in enumerate(SUBJECTS):
        messages: list[Message] = []
        for part in range(1 + rng.below(2)):
            box.clock.advance(600 + rng.below(600))
            text = f"{subject} {rng.below(9000) + 1000}: see part {part + 1}."
            messages.append(Message(rng.choice(SENDERS) if not part else messages[0].sender, ME, text, box.clock.now))
        folder: Folder = "archive" if n == len(SUBJECTS) - 1 else "inbox"
        box.threads[box.new_id("T")] = Thread(f"{subject} {rng.below(900) + 100}", messages, folder)
    return box


def send_on(box: Mailbox, rng: Rng) -> tuple[str, list[Call]]:
    key, to = rng.choice(["T1", "T2", "T3"]), f"{rng.choice(('books', 'legal', 'office'))}@firm.example"
    wish = f"Forward the thread '{box.threads[key].subject}' to {to}, then move it to the archive."
    return wish, [("forward", {"thread": key, "to": to}), ("move", {"thread": key, "folder": "archive"})]


def mark(box: Mailbox, rng: Rng) -> tuple[str, list[Call]]:
    sender, label = box.threads[rng.choice(["T1", "T2", "T3", "T5"])].messages[0].sender, rng.choice(LABELS)
    keys = [key for key, one in box.threads.items() if one.messages[0].sender == sender and one.folder == "inbox"]
    wish = f"Put the label {label} on every thread of the inbox that {sender} began, {len(keys)} in number."
    return wish, [("label", {"thread": key, "label": label}) for key in keys]


def answer(box: Mailbox, rng: Rng) -> tuple[str, list[Call]]:
    key, text = rng.choice(["T5", "T7", "T8"]), f"Thank you. We call you at {rng.below(8) + 9}:{rng.below(6)}0."
    subject = box.threads[key].subject
    wish = f'Reply to the thread "{subject}" once, with exactly the text "{text}", without the quotation marks.'
    return wish, [("reply", {"thread": key, "text": text})]


def clean(box: Mailbox, rng: Rng) -> tuple[str, list[Call]]:
    spared = rng.choice(["T4", "T6"])
    keys = [key for key in ("T4", "T6", "T9") if key != spared]
    wish = f"Move all newsletters of inbox and archive to the trash, except '{box.threads[spared].subject}'."
    return wish, [("move", {"thread": key, "folder": "trash"}) for key in keys]


FAMILIES: tuple[Callable[[Mailbox, Rng], tuple[str, list[Call]]], ...] = (send_on, mark, answer, clean)


def content(box: Mailbox) -> list[dict[str, Any]]:
    """Returns the threads as plain data, without ids, times and what is unread."""
    rows: list[dict[str, Any]] = []
    for one in box.threads.values():
        messages = [[message.sender, message.to, message.text] for message in one.messages]
        rows.append({"subject": one.subject, "folder": one.folder, "labels": one.labels, "messages": messages})
    return sorted(rows, key=str)


def make(split: str, number: int) -> qn.Task[Mailbox]:
    rng = Rng(key=f"mail_desk/{split}/{number}".encode())
    box = mailbox(rng)
    wish, calls = FAMILIES[number % len(FAMILIES)](box, rng)
    later = box.copy()
    for name, arguments in calls:
        getattr(later, name)(**arguments)
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"{wish} Change no other thread and send nothing else; you may read what you like.",
        start=box,
        truth=content(later),
        solution=(("list_threads", {"folder": "inbox"}), *calls),
    )


@qn.reward
def mail_is_right(view: qn.EpisodeView[Mailbox]) -> qn.Score:
    found, wanted = content(view.state), view.task.truth
    wrong = sorted({row["subject"] for row in [*found, *wanted] if row not in found or row not in wanted})
    return qn.Score(float(found == wanted), f"threads that differ: {wrong}")


env = qn.Environment(
    "mail_desk",
    tasks=lambda split: qn.Tasks(16, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(mail_is_right),
    state=Mailbox,
)
