"""Solutions of many tasks with the results that they read: siblings show where a solution's values come from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, ask, number, reset, score
from quintain.audit.kernel.registry import probe_function

_WALKED = 48
_CHOSEN = 40
_PART = 5
_LONGEST = 60_000
"""Characters of an observation that are kept."""
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?\d{1,3}(?:[,'\u2019 ]\d{3})+(?:\.\d+)?(?![\w])|(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\w])"
)


class SolutionRun(msgspec.Struct, frozen=True):
    """A task's solution, played.

    Attributes:
        prompt: The whole prompt at the start, as text.
        said: Result of each op.
        full: Its reward; more than 0.
    """

    task: str
    prompt: str
    ops: tuple[Op, ...]
    said: tuple[OpResult, ...]
    full: float

    @property
    def shape(self) -> tuple[str, ...]:
        """Returns the names of the called tools, in order."""
        return tuple(op.name or op.do for op in self.ops)

    def before(self, place: int) -> str:
        """Returns all text read before an op: the prompt, and the observations until then."""
        return "\n".join([self.prompt, *(text_of(result) for result in self.said[:place])])


def solution_runs(ctx: AuditContext) -> list[SolutionRun]:
    """The solutions of up to 48 tasks that are paid, some of which the audit did not choose; worked out once."""
    return ctx.once(("walks",), _solution_runs)


def kinds(
    ctx: AuditContext, alike: Callable[[SolutionRun], Hashable] = lambda solution_run: skeleton(solution_run.prompt)
) -> list[list[SolutionRun]]:
    """Returns the solutions by the kind of their task: the same tools in the same order, and a common key.

    Args:
        ctx: Context of the tasks.
        alike: Returns the key; by default the prompt without names and numbers. None: the task is of no kind.
    """
    found: dict[Hashable, list[SolutionRun]] = defaultdict(list)
    for solution_run in solution_runs(ctx):
        if (common := alike(solution_run)) is not None:
            found[solution_run.shape, common].append(solution_run)
    return list(found.values())


def _solution_runs(ctx: AuditContext) -> list[SolutionRun]:
    # What is wrong with one task shows only among its siblings: tasks that are looked at, and then others.
    chosen = ctx.sample_tasks(_CHOSEN)
    rest = [task for task in ctx.about.tasks if task not in set(chosen)] if chosen else []
    room = _WALKED - len(chosen)
    tasks = [*chosen, *rest[:: max(1, -(-len(rest) // room))][:room]] if room > 0 else chosen
    parts = [list(tasks[start : start + _PART]) for start in range(0, len(tasks), _PART)]
    value = {"prompt": "prompt" in ctx.offers}
    probes = [Probe((ask(f"{__name__}:solution_run", value | {"tasks": part}),)) for part in parts]
    seen = [record.at("ask") for record in ctx.play_all(probes)]
    return [run for result in seen if result.fine for run in msgspec.convert(result.value, list[SolutionRun])]


@probe_function
def solution_run(player: Player, _on: str, value: Any) -> Any:
    """In the child: solutions of some tasks; those that are not paid are left out."""
    found: list[Any] = []
    for place, task in enumerate(value["tasks"]):
        on = f"walk {place}"
        first = player.do(reset(task, on=on))
        seen = player.do(Op("oracle", on, task))
        if first.fine and seen.fine and seen.value:
            stated = [first.value] + ([player.do(Op("prompt", on, task)).value] if value["prompt"] else [])
            ops = msgspec.convert(seen.value, list[Op])
            said = [_short(player.do(op.moved(on))) for op in ops]
            paid = number(player.do(score(on=on)))
            if paid is not None and paid > 0:
                text = "\n".join(dict.fromkeys(text_of(OpResult(item)) for item in stated))
                found.append(SolutionRun(task, text, tuple(ops), tuple(said), paid))
        player.do(Op("close", on))
        player.adapters.pop(on, None)
    return [msgspec.to_builtins(item) for item in found]


def _short(seen: OpResult) -> OpResult:
    text = text_of(seen)
    kept = seen.value if len(text) <= _LONGEST else text[:_LONGEST]
    return OpResult(kept, raised=seen.raised, how=seen.how)


def text_of(seen: OpResult) -> str:
    """Returns the result of an op as the agent reads it."""
    if seen.raised:
        return seen.raised
    value = seen.value
    return value if isinstance(value, str) else codec.json(value).decode(errors="replace")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every scalar with where it stands; truth values and nulls say too little to count."""
    if is_dict(value):
        for key, item in value.items():
            yield from leaves(item, (*path, str(key)))
    elif is_list(value):
        for place, element in enumerate(value):
            yield from leaves(element, (*path, str(place)))
    elif is_number(value) or isinstance(value, str):
        yield path, value


def plain(text: str) -> str:
    """A text without what spelling adds: case, space, marks."""
    return re.sub(r"[^\w@.+]+", "", text).lower()


def decimal(value: Any) -> Decimal | None:
    """The number that a value is, marks between thousands aside; None when it is none."""
    if is_number(value):
        value = repr(value)
    if not isinstance(value, str):
        return None
    bare = re.sub(r"(?<=\d)[,'\u2019 ](?=\d{3}(?!\d))", "", value.strip().removeprefix("$").removesuffix("%").strip())
    if not re.fullmatch(r"[-+]?(\d{1,25}(\.\d{0,25})?|\.\d{1,25})([eE][-+]?\d{1,3})?", bare):
        return None
    try:
        return Decimal(bare)
    except InvalidOperation:
        return None


def numbers(text: str, *, alone: bool = False) -> set[Decimal]:
    """Returns the numbers in a text; with `alone`, only those that are not part of a word."""
    found = {decimal(candidate) for candidate in _NUMBER.findall(text)}
    found |= set() if alone else {decimal(candidate) for candidate in re.findall(r"\d+(?:\.\d+)?", text)}
    return {amount for amount in found if amount is not None}


def skeleton(prompt: str) -> tuple[str, ...]:
    """A prompt without what may vary from task to task: words with digits, and words that begin with a capital."""
    found = re.findall(r"\S+", prompt)
    return tuple("*" if any(sign.isdigit() for sign in item) or item[:1].isupper() else item for item in found)
