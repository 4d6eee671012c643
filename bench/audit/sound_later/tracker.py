"""An issue tracker on a database: optimistic locking by version numbers, soft delete, and a restore."""

from typing import Annotated, Literal

import msgspec

import quintain as qn
from quintain.resources.database import Database

Status = Literal["open", "doing", "closed"]
Number = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class Issue(msgspec.Struct):
    id: int
    title: str
    status: Status
    owner: str
    version: int = 1
    archived: bool = False


SEED = (
    Issue(1, "Login page is blank", "open", "mia"),
    Issue(2, "Export misses the last row", "doing", "noor", version=4),
    Issue(3, "Typo on the start page", "closed", "omar", version=2),
    Issue(4, "Dark mode", "open", "unassigned"),
    Issue(5, "Dark mode for the printer view", "open", "unassigned", version=2, archived=True),
    Issue(6, "Upload fails above 10 MB", "doing", "omar", version=3),
    Issue(7, "Session ends too early", "open", "noor"),
)


def fill(db: Database) -> None:
    db.insert(*SEED)


class Tracker(qn.State):
    db: Database

    def _current(self, issue: int, version: int) -> Issue:
        found = self.get_issue(issue)
        if found.version != version:
            raise qn.ToolError(f"issue {issue} is at version {found.version}, you gave {version}: read it again")
        return found

    def _set_archived(self, issue: int, version: int, *, archived: bool) -> Issue:
        if self._current(issue, version).archived == archived:
            raise qn.ToolError(f"issue {issue} is {'archived already' if archived else 'not archived'}")
        self.db.execute("UPDATE issues SET archived = ?, version = version + 1 WHERE id = ?", int(archived), issue)
        return self.get_issue(issue)

    @qn.tool
    def list_issues(
        self,
        status: Status | None = None,
        include_archived: bool = False,  # noqa: FBT001, FBT002 -- a model passes arguments by name
    ) -> list[Issue]:
        """List issues by number.

        Args:
            status: Only issues of this status.
            include_archived: Also list archived issues, which are left out otherwise.
        """
        sql = "SELECT * FROM issues WHERE (:status IS NULL OR status = :status) AND archived <= :most ORDER BY id"
        return self.db.all(Issue, sql, status=status, most=int(include_archived))

    @qn.tool
    def get_issue(self, issue: Number) -> Issue:
        """Read an issue, archived or not.

        Args:
            issue: Its number.
        """
        found = self.db.one(Issue, "SELECT * FROM issues WHERE id = ?", issue)
        if found is None:
            raise qn.ToolError(f"unknown issue {issue}")
        return found

    @qn.tool
    def set_status(self, issue: Number, version: Number, status: Status) -> Issue:
        """Set the status of an issue; its version rises by 1, also if the status was the same.

        Args:
            issue: Its number. An archived issue must be restored first.
            version: The version that you have read; the call is refused if the issue has another one by now.
            status: The new status.
        """
        if self._current(issue, version).archived:
            raise qn.ToolError(f"issue {issue} is archived: restore it first")
        self.db.execute("UPDATE issues SET status = ?, version = version + 1 WHERE id = ?", status, issue)
        return self.get_issue(issue)

    @qn.tool
    def assign(self, issue: Number, version: Number, owner: Literal["mia", "noor", "omar", "unassigned"]) -> Issue:
        """Assign an issue to a person, or make it unassigned; its version rises by 1, also if the owner was the same.

        Args:
            issue: Its number. An archived issue must be restored first.
            version: The version that you have read; the call is refused if the issue has another one by now.
            owner: The person, or unassigned.
        """
        if self._current(issue, version).archived:
            raise qn.ToolError(f"issue {issue} is archived: restore it first")
        self.db.execute("UPDATE issues SET owner = ?, version = version + 1 WHERE id = ?", owner, issue)
        return self.get_issue(issue)

    @qn.tool
    def archive(self, issue: Number, version: Number) -> Issue:
        """Archive an issue. It stays readable, and can be restored; its version rises by 1.

        Args:
            issue: Its number.
            version: The version that you have read.
        """
        return self._set_archived(issue, version, archived=True)

    @qn.tool
    def restore(self, issue: Number, version: Number) -> Issue:
        """Restore an archived issue; its version rises by 1.

        Args:
            issue: Its number.
            version: The version that you have read.
        """
        return self._set_archived(issue, version, archived=False)


Job = tuple[str, dict[int, dict[str, object]], list[tuple[str, dict[str, object]]]]
JOBS: list[Job] = [
    (
        "Close the issue about the blank login page.",
        {1: {"status": "closed"}},
        [("set_status", {"issue": 1, "version": 1, "status": "closed"})],
    ),
    (
        "Noor takes over from Omar the issue about uploads; its status stays.",
        {6: {"owner": "noor"}},
        [("assign", {"issue": 6, "version": 3, "owner": "noor"})],
    ),
    ("Archive all closed issues.", {3: {"archived": True}}, [("archive", {"issue": 3, "version": 2})]),
    (
        "The printer view was archived too early. Restore it, and assign it to Mia.",
        {5: {"archived": False, "owner": "mia"}},
        [("restore", {"issue": 5, "version": 2}), ("assign", {"issue": 5, "version": 3, "owner": "mia"})],
    ),
    (
        "The export is repaired: close that issue and archive it.",
        {2: {"status": "closed", "archived": True}},
        [("set_status", {"issue": 2, "version": 4, "status": "closed"}), ("archive", {"issue": 2, "version": 5})],
    ),
    (
        "Omar starts on the issue about dark mode that is not archived: assign it to him and set it to 'doing'.",
        {4: {"status": "doing", "owner": "omar"}},
        [
            ("assign", {"issue": 4, "version": 1, "owner": "omar"}),
            ("set_status", {"issue": 4, "version": 2, "status": "doing"}),
        ],
    ),
    (
        "Noor is ill. Make each of her issues unassigned and set it to 'open'.",
        {2: {"status": "open", "owner": "unassigned"}, 7: {"owner": "unassigned"}},
        [
            ("assign", {"issue": 2, "version": 4, "owner": "unassigned"}),
            ("set_status", {"issue": 2, "version": 5, "status": "open"}),
            ("assign", {"issue": 7, "version": 1, "owner": "unassigned"}),
        ],
    ),
]


def tasks(split: str) -> list[qn.Task[Tracker]]:
    world = Tracker(db=Database(Issue, seed=fill))
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} Change nothing else.",
            start=world,
            truth={str(row.id): _facts(row) | changed.get(row.id, {}) for row in SEED},
            solution=tuple(calls),
        )
        for n, (prompt, changed, calls) in enumerate(JOBS, 1)
    ]


def _facts(row: Issue) -> dict[str, object]:
    return {"title": row.title, "status": row.status, "owner": row.owner, "archived": row.archived}


@qn.reward
def as_asked(view: qn.EpisodeView[Tracker]) -> qn.Score:
    found = {str(row.id): _facts(row) for row in view.state.db.all(Issue, "SELECT * FROM issues ORDER BY id")}
    wrong = [key for key in found if found[key] != view.task.truth[key]]
    return qn.Score(float(not wrong), f"differs: {', '.join(wrong) or 'nothing'}")


env = qn.Environment(
    "tracker", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Tracker, splits=("test",)
)
