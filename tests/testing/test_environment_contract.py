"""The contract holds for environments that keep it, and notices each way to break it."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.environments import sales
from quintain.harness import Model
from quintain.harnesses import Dialogue
from quintain.task import Call
from quintain.testing import Bank, Counter, EnvironmentContract, bank, counter
from quintain.testing.elsewhere import ask
from quintain.testing.fakes import counted


class TestBank(EnvironmentContract):
    def environment(self) -> qn.Environment[Bank]:
        return bank(max_turns=20)

    def secrets(self, task: qn.Task[Any]) -> list[str]:
        return [*super().secrets(task), "ann paid bob"]

    @pytest.mark.slow  # The dialogue shows it.
    def test_other_processes_play_the_same(self) -> None:
        super().test_other_processes_play_the_same()


class TestCounter(EnvironmentContract):
    def environment(self) -> qn.Environment[Counter]:
        return counter()

    @pytest.mark.slow  # The dialogue shows it.
    def test_other_processes_play_the_same(self) -> None:
        super().test_other_processes_play_the_same()


class TestSales(EnvironmentContract):
    first = 2
    examples = 10

    def environment(self) -> qn.Environment[Any]:
        return sales.env

    @pytest.mark.slow  # Its tasks and its twins show it.
    def test_other_processes_play_the_same(self) -> None:
        super().test_other_processes_play_the_same()


class TestDialogue(EnvironmentContract):
    first = 2
    examples = 10

    def environment(self) -> qn.Environment[Counter]:
        return counter().replace(harness=Dialogue(stop=("bye",)))

    def test_a_silent_user_ends_the_solution(self) -> None:
        task = self.environment().tasks("test")[0]
        model = self.solver(task)
        assert model is not None
        trace = self._play(self.environment(), task, model)
        assert [turn.role for turn in trace.turns] == ["user", "agent", "agent", "user"]
        assert trace.reason == "the user ended the conversation"


class Broken(EnvironmentContract):
    """A contract with one environment, of which the tests below break a part."""

    first = 2
    examples = 100

    def __init__(self, **parts: Any) -> None:
        fields: dict[str, Any] = {"tasks": tasks, "harness": qn.ToolLoop(), "verifier": qn.Verifier(counted)}
        fields |= {"name": "broken", "state": Counter, "splits": ("all",)} | parts
        self._env: qn.Environment[Any] = qn.Environment(**fields)

    def environment(self) -> qn.Environment[Any]:
        return self._env


def task(n: int = 0, **fields: Any) -> qn.Task[Any]:
    parts: dict[str, Any] = {
        "id": f"t{n}",
        "prompt": "Count.",
        "start": Counter(),
        "truth": n + 1,
        "solution": (("add", {"amount": n + 1}),),
    }
    return qn.Task(**parts | fields)


def tasks(split: str) -> list[qn.Task[Any]]:
    return [task(n) for n in range(3)]


def one(**fields: Any) -> Any:
    return lambda split: [task(**fields)]


numbers = itertools.count()


class Leaky(Counter):
    """World whose tool keeps state outside of the world."""

    seen: list[int] = []

    @qn.tool
    def leak(self) -> int:
        """Leak a number."""
        return next(numbers)


class Fragile(Counter):
    @qn.tool
    def divide(self, by: int) -> int:
        """Divide.

        Args:
            by: A number.
        """
        return 1 // by


class Wordy(Counter):
    @qn.tool
    def talk(self) -> None:
        pass

    talk.__doc__ = "Talk. " * 400


class Shallow:
    """A resource whose forks forget."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def fork(self) -> Shallow:
        return Shallow(self.count)

    def dump(self) -> bytes:
        return b""

    def digest(self) -> str:
        return "always the same"

    @classmethod
    def load(cls, data: bytes, *arguments: Any) -> Shallow:
        return cls()


class Forgets(Counter):
    extra: Shallow = msgspec.field(default_factory=Shallow)

    @qn.tool
    def more(self) -> int:
        """Count in another place."""
        self.extra.count += 1
        return self.extra.count


@qn.reward
def generous(outcome: qn.EpisodeView[Any]) -> float:
    return 1.0


@qn.reward
def strict(outcome: qn.EpisodeView[Any]) -> qn.Score:
    return qn.Score(0.5, "never good enough")


class Rude:
    async def play(self, session: qn.Session, model: Model) -> None:
        raise RuntimeError("I don't like you")


def changing(split: str) -> qn.Tasks[Any]:
    return qn.Tasks(1, lambda n: task(prompt=f"Count. {next(numbers)}"))


class Fickle:
    """A start that another episode has changed."""

    def __init__(self) -> None:
        self.world = Counter()

    def __call__(self) -> Counter:
        self.world.count += 1
        return self.world.copy()


def scribbled() -> Any:
    world = Counter()

    @qn.reward
    def scribbler(outcome: qn.EpisodeView[Counter]) -> float:
        world.count += 1
        return counted.fn(outcome)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    return {"tasks": one(start=world), "verifier": qn.Verifier(scribbler)}


SOLVED = "test_the_solution_gets_the_full_score"
COPIES = "test_copies_go_on_as_the_episode_does"
MORE: tuple[Call, ...] = (("more", {}), ("more", {}), ("more", {}), ("add", {"amount": 1}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "law", "says"),
    [
        ({"tasks": lambda split: []}, "test_every_split_has_tasks_with_names_of_their_own", "split 'all' has no tasks"),
        (
            {"tasks": lambda split: [task(), task()]},
            "test_every_split_has_tasks_with_names_of_their_own",
            "split 'all' repeats a task id",
        ),
        (
            {"tasks": one(start=qn.State())},
            "test_every_task_starts_in_a_world_of_the_state_class",
            "task 't0' starts in a State, not in a Counter",
        ),
        ({"tasks": changing}, "test_a_task_is_the_same_whenever_it_is_made", "task 0 of split 'all' is another one"),
        ({"tasks": one(start=Fickle())}, "test_a_task_is_the_same_whenever_it_is_made", "is another one"),
        (scribbled(), "test_playing_a_task_does_not_change_it", "an episode changed task 't0' itself"),
        (
            {"tasks": one(prompt="The answer is (a long secret).", truth="(a long secret).")},
            "test_the_truth_cannot_be_read",
            r"the agent of task 't0' can read '\(a long secret\)\.'",
        ),
        (
            {"state": Wordy, "tasks": one(start=Wordy())},
            "test_every_tool_is_one_that_endpoints_take",
            "the description of talk is too long",
        ),
        (
            {"state": Fragile, "tasks": one(start=Fragile())},
            "test_no_valid_call_breaks_the_world",
            "valid calls broke task 't0': .*ZeroDivisionError",
        ),
        (
            {"state": Forgets, "tasks": one(id="t3", start=Forgets(), solution=MORE)},
            COPIES,
            "what a snapshot restores goes on differently after turn 2 of task 't3'",
        ),
        ({"verifier": qn.Verifier(strict)}, SOLVED, "the solution of 't0' got 0.5: .*never good enough"),
        ({"tasks": one(solution=(("add", {"amount": 7}),))}, SOLVED, "the solution of 't0' got 0.0"),
        ({"harness": Rude()}, SOLVED, r"t0' failed: .*I don't like you.*, in play \(.*\(component H, "),
        ({"verifier": qn.Verifier(generous)}, "test_doing_nothing_gets_less", "doing nothing solves task 't0'"),
    ],
)
def test_contract_detects_each_broken_law(parts: dict[str, Any], law: str, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        getattr(Broken(**parts), law)()


def test_a_replay_that_differs_is_noticed() -> None:
    contract = Broken(state=Leaky, tasks=one(start=Leaky(), solution=(("leak", {}), ("add", {"amount": 1}))))
    with pytest.raises(qn.errors.ReplayDivergence, match="turn 0, step 0, observation"):
        contract.test_a_replay_is_equal_to_the_byte()


def test_tasks_without_a_solution_are_counted() -> None:
    contract = Broken(tasks=one(solution=None))
    with pytest.raises(pytest.skip.Exception, match="1 tasks have no solution"):
        contract.test_the_solution_gets_the_full_score()
    contract.test_copies_go_on_as_the_episode_does()
    contract.test_a_replay_is_equal_to_the_byte()


class Hashed(Counter):
    @qn.tool
    def name(self) -> list[str]:
        """List some names."""
        return list({"ann", "bob", "cid", "dan", "eve", "fay"})


class HashedContract(EnvironmentContract):
    first = 1

    def environment(self) -> qn.Environment[Any]:
        return qn.Environment(
            "hashed",
            tasks=one(start=Hashed(), solution=(("name", {}), ("add", {"amount": 1}))),
            harness=qn.ToolLoop(),
            verifier=qn.Verifier(counted),
            state=Hashed,
            splits=("all",),
        )


def test_an_episode_that_depends_on_the_process_is_noticed() -> None:
    HashedContract().test_a_replay_is_equal_to_the_byte()
    with pytest.raises(AssertionError, match="an episode of t0 of all depends on the process"):
        HashedContract().test_other_processes_play_the_same()


class Here(EnvironmentContract):
    def report(self) -> dict[str, str]:
        raise LookupError("no report today")


def test_trouble_elsewhere_is_shown_here() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)Here\.report\(\) in another process:.*LookupError: no report today"):
        ask(Here(), "report")


def test_a_contract_says_what_it_needs() -> None:
    with pytest.raises(NotImplementedError, match=r"Here\.environment\(\) returns the environment that is tested"):
        Here().test_every_tool_is_one_that_endpoints_take()
