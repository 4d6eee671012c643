"""Episodes in a world with files: forked, frozen, thawed and replayed, they are the same to the byte."""

from __future__ import annotations

import asyncio

import quintain as qn
from quintain import codec, resource
from quintain.context import Snapshot
from quintain.episode import Episode
from quintain.replay import replay
from quintain.resources.workspace import Workspace, shown
from quintain.testing.elsewhere import ask
from quintain.trace import Message, Reply, Step, ToolCall


class Office(qn.State):
    files: Workspace

    @qn.tool
    def write(self, path: str, text: str) -> str:
        """Write a file.

        Args:
            path: Which.
            text: What.
        """
        self.clock.advance(1)
        self.files.write(path, text)
        return "written"

    @qn.tool
    def read(self, path: str) -> str:
        """Read a file.

        Args:
            path: Which.
        """
        return self.files.text(path)

    @qn.tool
    def find(self, pattern: str) -> list[str]:
        """Find files.

        Args:
            pattern: Such as `**/*.py`.
        """
        return [f"{shown(path)} {self.files.stat(path).mtime}" for path in self.files.glob(pattern)]

    @qn.tool
    def remove(self, path: str) -> str:
        """Remove a file or folder.

        Args:
            path: Which.
        """
        self.files.delete(path, recursive=True)
        return "removed"


@qn.reward
def untouched(outcome: qn.EpisodeView[Office]) -> float:
    """The share of the notes that are as they were."""
    start = outcome.task.start
    assert isinstance(start, Office)
    changes = start.files.diff(outcome.state.files)
    return 1 - len([change for change in changes if change.before]) / 40


def environment() -> qn.Environment[Office]:
    files = Workspace({f"notes/{n}.txt": f"note {n}\n" for n in range(40)})
    files.link("first", "notes/0.txt")
    return qn.Environment(
        "office",
        tasks=lambda split: [qn.Task(id="one", prompt="Tidy up.", start=Office(files=files.fork()))],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(untouched),
        state=Office,
        config=qn.Config(max_turns=50),
    )


def reply(number: int) -> Reply:
    name, arguments = (
        ("write", {"path": f"notes/{number}.txt", "text": f"again {number}"}),
        ("read", {"path": f"/workspace/notes/{number - 1}.txt"}),
        ("find", {"pattern": "**/*1*.txt"}),
        ("remove", {"path": f"notes/{number % 5}.txt"}),
        ("read", {"path": "../../etc/passwd"}),
    )[number % 5]
    return Reply(Message("assistant", calls=(ToolCall(f"call_{number}", name, codec.text(arguments)),)))


async def played(episode: Episode[Office], numbers: range) -> Episode[Office]:
    for number in numbers:
        await episode.session.step(reply(number))
    return episode


async def story() -> list[bytes]:
    env = environment()
    task = env.tasks("test")[0]
    straight = await played(await Episode.begin(env, task, seed=3), range(24))
    half = await played(await Episode.begin(env, task, seed=3), range(12))
    twin = await half.fork()
    frozen = (await half.snapshot()).to_bytes()
    await played(half, range(100, 103))  # what one branch does, the others do not see
    thawed = await Episode.restore(env, task, Snapshot.from_bytes(frozen))
    ends: list[bytes] = []
    for episode in (straight, await played(twin, range(12, 24)), await played(thawed, range(12, 24))):
        await episode.session.step(Reply(Message("assistant", "Done.")))
        episode.session.terminate("the agent answered")
        await episode.verify()
        ends.append(episode.trace.to_bytes() + (await resource.digest(episode.state)).encode())
    await replay(env, task, straight.trace)
    return ends


class Elsewhere:
    def ends(self) -> list[str]:
        return [codec.digest(end) for end in asyncio.run(story())]


def test_straight_forked_and_thawed_are_one() -> None:
    assert len(set(asyncio.run(story()))) == 1


def test_another_process_plays_the_same() -> None:
    here = Elsewhere().ends()
    assert ask(Elsewhere(), "ends") == [here, here]


def test_mistakes_of_the_model_become_observations() -> None:
    async def observed() -> list[Step]:
        env = environment()
        episode = await Episode.begin(env, env.tasks("test")[0], seed=3)
        for path in ("/etc/passwd", "none", "notes", "first/x", "a\0b", "x" * 300, "n/" * 3000):
            call = ToolCall("call", "read", codec.text({"path": path}))
            await episode.session.step(Reply(Message("assistant", calls=(call,))))
        return [step for turn in episode.trace.turns for step in turn.steps if step.is_error]

    found = asyncio.run(observed())
    assert len(found) == 7
    assert "outside" in str(found[0])
