"""Terminal view of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from quintain import codec
from quintain.changes import MISSING, WorldChange, shown
from quintain.errors import Frame
from quintain.studio.watch import StepChanges
from quintain.trace import Content, End, Level, Message, Reward, Step, ToolCall, Trace, Turn, plain

from . import hints
from .console import clipped, excerpts, grid, number, plural, print_wrapped, safe

_LINES = 12
_CHARACTERS = 1200
_VALUE = 160
_CHANGES = 20
_RULE = 100
"""Most columns of a title and its line."""
_MARGIN = 11
"""Columns of the labels on the left."""

Row = tuple[str, Text]
"""A label, and what it labels."""


def print_transcript(
    console: Console,
    trace: Trace,
    *,
    watched: StepChanges | None,
    reason: str,
    frames: Sequence[Frame] = (),
    full: bool,
) -> None:
    """Everything about one trace.

    Args:
        console: Where to.
        trace: Which.
        watched: What its steps changed, where that is known.
        reason: Why it is not.
        frames: Lines of the author's code that led to the failure.
        full: Cut nothing short.
    """
    _print_head(console, trace)
    for turn in trace.turns:
        _print_title(console, _turn_title(turn))
        _print_rows(console, _turn_rows(turn, watched, full=full))
    _print_title(console, "verdict")
    _print_verdict(console, trace, watched.best if watched is not None else {})
    for frame in frames:
        place = Text(f"  {safe(frame.file)}, line {frame.line}, in {safe(frame.function)}", style="dim")
        console.print(place.append(f"\n    {safe(frame.code)}", style="not dim"), soft_wrap=True)
    if trace.failure is not None and (hint := hints.of_failure(trace.failure, frames)):
        console.print(Text(f"Hint: {hint}", style="yellow"))
    if watched is None:
        console.print(Text(f"Changes of each step are not shown: {reason}", style="yellow"))
    elif watched.diverged is not None:
        words = "so what steps changed is left out from there. `quintain replay` says what differs."
        console.print(
            Text(f"The environment answers otherwise from turn {watched.diverged} on, {words}", style="yellow")
        )


def _print_title(console: Console, title: str) -> None:
    rule = "─" * (min(console.width, _RULE) - len(title) - 1)
    console.print(Text(title, style="bold").append(f" {rule}", style="not bold dim"))


def _print_head(console: Console, trace: Trace) -> None:
    where = ", ".join(part for part in (trace.environment, trace.split, trace.agent) if part)
    console.print(Text(f"{where}: {trace.task}", style="bold"))
    tags = "".join(f", {name} {value}" for name, value in trace.tags.items())
    numbers = f"seed {trace.seed}, member {trace.member}, attempt {trace.attempt}{tags}"
    console.print(Text(safe(numbers), style="dim"))
    console.print(_outcome(trace))
    console.print()


def _outcome(trace: Trace) -> Text:
    failure = trace.failure
    if failure is not None:
        where = f"stage {failure.stage}, after {plural(failure.turn, 'turn')}"
        blame = Text(f"failed, by {failure.component}: {failure.kind}, {where}", style="bold red")
        return blame.append(f"\n{failure.type}: {safe(failure.message)}", style="not bold")
    end = trace.end.value if trace.end is not None else "not ended"
    style = "bold yellow" if trace.end is End.TRUNCATED else "bold"
    return Text(f"score {number(trace.score)}", style=style).append(f", {end}: {safe(trace.reason)}", style="not bold")


def _turn_title(turn: Turn) -> str:
    thread = f", thread {turn.thread}" if turn.thread else ""
    branch = f", branch {turn.branch}" if turn.branch else ""
    return f"turn {turn.index}, {turn.role}{thread}{branch}"


def _turn_rows(turn: Turn, watched: StepChanges | None, *, full: bool) -> Iterator[Row]:
    if turn.keep is not None:
        yield "context", Text(f"rewritten; {plural(turn.keep, 'message')} kept", style="dim")
    for message in turn.added:
        yield message.role, _said(message.content, full=full, style="dim")
    said: Message = turn.reply.message
    if said.reasoning:
        yield "thinks", _said(said.reasoning, full=full, style="dim italic")
    made = {step.call.id for step in turn.steps}
    own = [call for call in said.calls if call.id not in made]
    if said.text or not (turn.steps or own):
        yield "says", _said(said.content, full=full) if said.text else Text("(nothing)", style="dim")
    for n, step in enumerate(turn.steps):
        yield from _step_rows(step, full=full)
        found = watched.steps.get((turn.index, n)) if watched is not None else None
        yield from _change_rows(found or [], full=full)
        yield from _reward_rows(r for r in turn.rewards if r.level is Level.STEP and r.step == n)
    for call in own:
        yield "asks", _called(call, full=full)
    yield from _reward_rows(r for r in turn.rewards if r.level is not Level.STEP)


def _step_rows(step: Step, *, full: bool) -> Iterator[Row]:
    yield "calls", _called(step.call, full=full)
    if step.fault is not None:
        yield "fault", Text(f"{step.fault}, as planned", style="magenta")
    yield (
        ("error" if step.is_error else "sees"),
        _said(step.observation, full=full, style="red" if step.is_error else ""),
    )
    if step.data:
        yield "data", _said(codec.text(step.data), full=full, style="dim")


def _called(call: ToolCall, *, full: bool) -> Text:
    arguments = safe(call.arguments if full else clipped(call.arguments, _CHARACTERS))
    return Text(safe(call.name), style="bold cyan").append(f" {arguments}", style="not bold default")


def _change_rows(found: list[WorldChange], *, full: bool) -> Iterator[Row]:
    for change in found if full else found[:_CHANGES]:
        before, after = shown(change.before), shown(change.after)
        if not full and MISSING in (change.before, change.after):
            before, after = clipped(before, _VALUE), clipped(after, _VALUE)
        elif not full:
            before, after = excerpts(before, after, _VALUE)
        line = Text(safe(change.path), style="bold").append(": ", style="not bold")
        line.append(safe(before), style="not bold red").append(" → ", style="not bold")
        yield "changes", line.append(safe(after), style="not bold green")
    if not full and len(found) > _CHANGES:
        yield "", Text(f"and {len(found) - _CHANGES} more; see all with --full", style="dim")


def _said(content: Content, *, full: bool, style: str = "") -> Text:
    text = safe(plain(content))
    if full:
        return Text(text, style=style)
    lines = text.splitlines()
    kept = clipped("\n".join(lines[:_LINES]), _CHARACTERS)
    rest = f"\n… {plural(len(lines) - _LINES, 'further line')}; see all with --full" if len(lines) > _LINES else ""
    return Text(kept, style=style).append(rest, style="dim")


def _reward_rows(rewards: Iterable[Reward]) -> Iterator[Row]:
    """Yields a row per reward with a reason, and one row for all others."""
    brief = Text()
    for reward in rewards:
        style = _style(reward)
        verdict = Text(f"{reward.name} ", style=style).append(_value(reward), style=f"bold {style}")
        if reward.reason:
            yield "reward", verdict.append(f"  {safe(reward.reason)}", style="not bold dim")
        else:
            brief.append("   " if brief else "").append_text(verdict)
    if brief:
        yield "reward", brief


def _style(reward: Reward) -> str:
    """Returns the colour of a reward by its effect on the score: a penalty of negative weight is red."""
    effect = (reward.value or 0.0) * reward.weight
    return "red" if effect < 0 else "green" if effect > 0 else "default"


def _value(reward: Reward) -> str:
    return "skipped" if reward.value is None else number(reward.value)


def _print_rows(console: Console, rows: Iterable[Row]) -> None:
    """Prints labels and wrapped texts; a label is not repeated."""
    above = ""
    for label, text in rows:
        print_wrapped(console, text, margin=_MARGIN, label=label if label != above else "")
        above = label
    console.print()


def _print_verdict(console: Console, trace: Trace, best: dict[str, float]) -> None:
    """Prints the criteria over the whole episode, then the score and the rewards."""
    rows = [_criterion_row(given) for given in _by_name(trace.every_reward()).values()]
    if rows:
        console.print(grid("criterion", "?level", ">times", ">raw", ">value", ">weight", "?least", rows=rows))
        console.print()
    console.print(_outcome(trace))
    if trace.failure is not None:
        console.print("A failed episode has no score and is excluded from all means.")
        return
    lost = set(why_not_one(trace, best))
    if lost and trace.end is End.TRUNCATED:
        console.print(Text(f"The episode was cut short by {trace.reason}."))
    for reward in trace.rewards:
        style = "red" if reward.name in lost else _style(reward)
        line = Text(f"{reward.name} ", style=style).append(_value(reward), style="bold")
        line.append(f"  {safe(reward.reason)}" if reward.reason else "", style="not bold default")
        print_wrapped(console, line, margin=4, label="  -" if style == "red" else "  +")


def _by_name(rewards: Iterable[Reward]) -> dict[str, list[Reward]]:
    named: dict[str, list[Reward]] = {}
    for reward in rewards:
        named.setdefault(reward.name, []).append(reward)
    return named


def _criterion_row(given: list[Reward]) -> tuple[object, ...]:
    """Returns the row of one criterion: its sums, and the turn with its least value."""
    first = given[0]
    raw, value = ([n for r in given if (n := getattr(r, side)) is not None] for side in ("raw", "value"))
    low = min((r for r in given if r.value is not None), key=lambda r: r.value or 0.0, default=first)
    least = f"{number(low.value)} in turn {low.turn}" if len(given) > 1 else ""
    sums = (number(sum(side)) if side else "-" for side in (raw, value))
    return (first.name, first.level.value, len(given), *sums, number(first.weight), least)


def why_not_one(trace: Trace, best: dict[str, float]) -> list[str]:
    """Returns the criteria that kept the score below 1; empty if the score is 1 or missing.

    Args:
        trace: The record of the episode.
        best: Maximum of each criterion, weight included; by default 1 times its weight.
    """
    if trace.score is None or trace.score >= 1:
        return []
    judged = [(r.name, r.value * r.weight, max(0.0, r.weight)) for r in trace.rewards if r.value is not None]
    return [name for name, delivered, top in judged if delivered < best.get(name, top)]
