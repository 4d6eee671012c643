"""A queue of jobs that run when a tick passes and may fail by chance; a key makes a repeated submission harmless."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Kind = Literal["resize", "convert", "print"]
File = Literal["cat.png", "dog.png", "map.pdf"]
Key = Annotated[str, msgspec.Meta(pattern="^[a-z0-9-]{1,20}$", max_length=20)]
RUNS = 3
"""Most runs that a job needs."""


class Job(msgspec.Struct):
    id: str
    kind: str
    file: str
    status: Literal["waiting", "done", "cancelled"] = "waiting"
    failures: int = 0


class Queue(qn.State):
    jobs: list[Job]
    answers: dict[str, str] = {}
    """First answer by key."""

    @qn.tool
    def submit(self, key: Key, kind: Kind, file: File) -> str:
        """Submit a job; it waits for the next tick.

        The key makes it safe to submit again: each further call with a key that was used returns the first answer to
        the letter and does nothing, whatever its other arguments are and whatever became of the job.

        Args:
            key: A key of your choice for this job, 1 to 20 of a-z, 0-9 and -.
            kind: What is done.
            file: With which file.
        """
        if key not in self.answers:
            job = Job(self.new_id("J"), kind, file)
            self.jobs.append(job)
            self.answers[key] = f"{job.id}: {kind} {file} is waiting"
        return self.answers[key]

    @qn.tool
    def tick(self) -> list[str]:
        """Let a tick pass: each waiting job runs once, in the order of submission; returns what became of each.

        A run fails by chance, one of two, with the error "disk busy"; the job waits on for the next tick. A job that
        has failed twice does not fail again, so three ticks complete each job.
        """
        return [self._run(job) for job in self.jobs if job.status == "waiting"]

    def _run(self, job: Job) -> str:
        if job.failures < RUNS - 1 and self.rng.below(2):
            job.failures += 1
            return f"{job.id} failed: disk busy; it is waiting"
        job.status = "done"
        return f"{job.id} is done"

    @qn.tool
    def cancel(self, job: str) -> str:
        """Cancel a job that is waiting.

        Args:
            job: Its id, such as J1.
        """
        for one in self.jobs:
            if one.id == job and one.status == "waiting":
                one.status = "cancelled"
                return f"{job} is cancelled"
        raise qn.ToolError(f"no job {job!r} is waiting")

    @qn.tool
    def status(self) -> list[Job]:
        """List all jobs, the first submitted first, with their status and how often they failed."""
        return self.jobs


Call = tuple[str, dict[str, object]]
TICKS: list[Call] = [("tick", {})] * RUNS


def submit(key: str, kind: str, file: str) -> Call:
    return "submit", {"key": key, "kind": kind, "file": file}


# Each: what is asked for, jobs that are done and that wait at the end, a solution.
JOBS: list[tuple[str, list[str], list[str], list[Call]]] = [
    ("Get cat.png resized.", ["print map.pdf", "resize cat.png"], [], [submit("a", "resize", "cat.png"), *TICKS]),
    ("Get dog.png converted and resized.", ["convert dog.png", "print map.pdf", "resize dog.png"], [],
     [submit("a", "convert", "dog.png"), submit("b", "resize", "dog.png"), *TICKS]),
    ("Get map.pdf printed twice in all: J1 is the first one.", ["print map.pdf", "print map.pdf"], [],
     [submit("a", "print", "map.pdf"), *TICKS]),
    ("J1 must not be printed: cancel it. Get map.pdf converted.", ["convert map.pdf"], [],
     [("cancel", {"job": "J1"}), submit("a", "convert", "map.pdf"), *TICKS]),
    ("Get J1 done, then submit the job to convert cat.png and leave it waiting.", ["print map.pdf"],
     ["convert cat.png"], [*TICKS, submit("a", "convert", "cat.png")]),
    ("Get dog.png printed exactly once. To be sure, you may submit it twice with one key.",
     ["print dog.png", "print map.pdf"], [], [submit("dog-print", "print", "dog.png")] * 2 + TICKS),
]  # fmt: skip
RULE = (
    "The job J1, print map.pdf, is waiting under the key map-1; it shall be done too unless something else is said. "
    "You are judged by the jobs that are done and those that wait at the end, in any order. Keys, failed runs and "
    "cancelled jobs do not count."
)


def queue() -> Queue:
    made = Queue(jobs=[])
    made.submit("map-1", "print", "map.pdf")
    return made


def tasks(split: str) -> list[qn.Task[Queue]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULE}",
            start=queue(),
            truth={"done": done, "waiting": waiting},
            solution=tuple(calls),
        )
        for n, (prompt, done, waiting, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Queue]) -> qn.Score:
    found = {
        status: sorted(f"{job.kind} {job.file}" for job in view.state.jobs if job.status == status)
        for status in ("done", "waiting")
    }
    return qn.Score(float(found == view.task.truth), f"found {found}")


env = qn.Environment(
    "jobs", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Queue, splits=("test",)
)
