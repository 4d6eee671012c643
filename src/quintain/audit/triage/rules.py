"""The eleven rules in order. The first proven label wins; all labels are kept.

Rules 1 and 2 read the record alone; 3, 4 and 6 use the environment; 5, 7, 8, 9 and 10 compare. Episodes that no rule
claims are the policy's (11).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from quintain.audit.kernel.finding import Confidence
from quintain.errors import WALL_CLOCK_KINDS
from quintain.trace import Level, Trace, plain

from .episode_log import Call, EpisodeLog, RecordedFailure, Utterance, loaded, mapping, sequence, strings
from .evidence import Case, FirstDifference
from .labels import Label, Owner
from .schema import violation
from .siblings import repeated

_MAX_SHARE = 0.5


class NotApplied(Exception):
    """Signal that a rule cannot judge an episode; the message gives the reason."""


Rule = Callable[[Case], Iterator[Label]]


def _label(
    owner: Owner, why: str, classes: str = "", *, at: Any = None, sure: Confidence = "proven", loud: bool = False
) -> Label:
    """Returns a label of the classes in a text; `at` is a turn, or has a turn and perhaps a step."""
    return Label(
        owner=owner,
        classes=tuple(classes.split()),
        visibility="loud" if loud else "silent",
        confidence=sure,
        why=why,
        turn=getattr(at, "turn", at),
        step=getattr(at, "step", None),
    )


# --- 1: recorded failures at a boundary ---

_INFRA = (
    "transport_", "provider_", "session_", "cancelled", "kill_shaped", "shutdown", "persistence_failed",
    "cohort_incomplete", "agent_request_failed", "quintain:model_reply_invalid",
)  # fmt: skip
_BY_PART: dict[str, Owner] = {
    "T": "task", "H": "infra", "V": "verifier", "S": "env", "C": "infra", "model": "infra",
}  # fmt: skip
_UNKNOWN: Owner = "unknown"
_BY_KIND = {
    "quintain:tool_bug": "races", "quintain:state_bug": "races", "quintain:tool_timeout": "races",
    "quintain:reset_failed": "unsolvable", "quintain:replay_diverged": "reset_leak",
    "quintain:invariant_violated": "races", "quintain:reward_out_of_range": "reward_clipping",
    "quintain:judge_missing": "judge", "quintain:verifier_timeout": "races", "judge_failed": "judge",
    "judge_unparseable": "judge", "verifier_error": "races",
}  # fmt: skip
_WORDS: tuple[tuple[Owner, tuple[str, ...]], ...] = (
    ("trainer", ("overlong", "context_length", "context length", "truncat")),
    ("infra", ("sandbox", "infra", "docker", "tunnel", "connect", "network", "timeout", "timed out", "unavailable")),
    ("infra", ("ratelimit", "rate limit", "429", "502", "503", "modelerror", "apierror", "emptymodelresponse")),
    ("simulator", ("simulat", "usererror")),
)
"""Words in a foreign error, by owner."""


def boundary(case: Case) -> Iterator[Label]:
    """Labels the recorded failure by the boundary at which it happened.

    A call that hung is replayed before it is blamed: if the same call answers now, the tool was not at fault.
    """
    broken, evidence = case.played.broken, case.evidence
    if broken is None:
        return
    owner, why, sure = _filed(broken)
    if broken.kind in WALL_CLOCK_KINDS and broken.part == "S" and not evidence.missing:
        hangs = evidence.broke == broken.kind
        owner = "env" if hangs else "infra"
        why += f"; {'it hangs again' if hangs else 'the same call answers'} when it is played again"
    yield _label(owner, why, _BY_KIND.get(broken.kind, ""), at=broken, sure=sure, loud=True)


def _filed(broken: RecordedFailure) -> tuple[Owner, str, Confidence]:
    said = f"{broken.type}: {broken.message}".strip(": ")[:200]
    owner: Owner = _BY_PART.get(broken.part, _UNKNOWN)
    if broken.kind:
        owner = "infra" if broken.kind.startswith(_INFRA) else owner
        return owner, f"the episode broke ({broken.kind}, part {broken.part}): {said}", "proven"
    found: list[Owner] = [one for one, words in _WORDS if any(word in said.lower() for word in words)]
    owner = found[0] if found else owner
    return owner, f"the log records an error: {said}", "likely" if owner == _UNKNOWN else "proven"


# --- 2: missing or impossible rewards ---


def reward(case: Case) -> Iterator[Label]:
    """Labels a reward that is missing, not a number, without its verdicts, or recorded next to a failure."""
    one, default = case.played, "silent_default"
    if one.reward is None:
        why = f"the episode {'ended without a score' if one.has_reward else 'has no field for a reward'}"
        found = _label("verifier", why, default, sure="proven" if one.end else "likely", loud=True)
        yield from [found] if one.broken is None else []
    elif not math.isfinite(one.reward):
        yield _label("verifier", f"the reward is {one.reward}", "reward_clipping", loud=True)
    elif one.broken is not None:
        why = f"the episode failed, and was given the reward {one.reward:g} all the same"
        yield _label("verifier", why, default)
    if one.reward is not None and one.broken is None:
        if one.trace is not None and (why := _unfounded(one.trace)):
            yield _label("verifier", why, default)
        elif one.trace is None and not one.components and case.run.has_components > _MAX_SHARE:
            why = "no criterion has a verdict here, though most episodes record them"
            yield _label("verifier", why, default, sure="likely")
    is_full = one.limit is not None and len(one.said) >= one.limit
    if is_full and one.said and one.said[-1].calls and one.form != "quintain" and one.end in ("", "terminated"):
        said = "replies were used up in the middle of work, and the record does not say it was cut short"
        yield _label("trainer", f"all {one.limit} {said}", default, at=len(one.said) - 1, sure="likely")


def _unfounded(trace: Trace) -> str:
    """Returns why a recorded score does not follow from the verdicts; empty if it may."""
    missing = sorted(set(trace.criteria) - {reward.name for reward in trace.every_reward()})
    if missing:
        return f"the score is there, but criteria without a verdict are {', '.join(missing)}"
    counted = [(r.value, r.weight) for r in trace.rewards if r.level is Level.TRAJECTORY and r.value is not None]
    totals = math.fsum(v * w for v, w in counted), math.prod(v for v, _ in counted)
    if trace.rewards and not any(_same(total, trace.score or 0.0) for total in totals):
        return f"the score {trace.score} is neither the sum nor the product of the verdicts recorded with it"
    return ""


def _same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


# --- 3: a replay of the same replies in a fresh world gives other answers ---

_OUTAGE = re.compile(
    r"\b(time[d]?[ -]?out|50[0234]|429|unavailable|rate[ -]limit|connection|refused|reset by peer)\b", re.IGNORECASE
)
_APART = "the worlds differ after equal answers"
_NOTHING = ("", "[]", "{}", "null", "none", "ok", "0", "false")


def replay(case: Case) -> Iterator[Label]:
    """Labels the first difference between record and replay; without an environment, of equal calls in equal worlds."""
    evidence, one, left = case.evidence, case.played, case.evidence.left
    if evidence.missing:
        odd = next(case.run.odd_answers(one), None)
        if odd is None:
            raise NotApplied(evidence.missing)
        call, same, other = odd
        why = f"the same call in the same world was answered otherwise {other} times, and like this {same} times"
        yield _label("env", why, "reset_leak", at=call, sure="proven" if other > same else "hint")
        return
    if left is None or (one.broken is not None and left.field in ("turns", "end")):
        return
    if left.field == "end" and evidence.broke and one.broken is None:
        return  # the verifier broke this time; rule 4 speaks of it
    owner, kind, what = _kind(one, left)
    if not evidence.same_version:
        why = f"another version of the environment answers otherwise ({what}); this one cannot say which is right"
        yield _label("env", why, kind, at=left, sure="hint")
        return
    if not evidence.steady:
        kind, what = "reset_leak", f"{what}, and one replay differs from the next"
    yield _label(owner, f"a replay in a fresh world differs in {left.field}: {what}", kind, at=left)


def _kind(one: EpisodeLog, left: FirstDifference) -> tuple[Owner, str, str]:
    sides = f"recorded {_short(left.recorded)}, replayed {_short(left.found)}"
    call = next((c for c in one.calls_of(left.turn) if c.step == left.step), None)
    if call is not None and left.field in ("observation", "is_error"):
        owner, kind, what = _of_answer(one, call, left)
        return owner, kind, f"{what}; {sides}"
    if left.field == "state_digest":
        kind = "silent_default" if left.idle else "reset_leak"
        return "env", kind, "a call was acknowledged and changed nothing" if left.idle else _APART
    return ("infra" if left.field in ("turns", "end") else "env"), "reset_leak", sides


def _of_answer(one: EpisodeLog, call: Call, left: FirstDifference) -> tuple[Owner, str, str]:
    earlier = [c for c in one.calls if (c.turn, c.step) < (call.turn, call.step) and c.key == call.key]
    if call.is_error and _OUTAGE.search(call.observation):
        return "infra", "silent_default", "an outage that nothing recorded as one"
    if any(c.observation == call.observation for c in earlier):
        return "env", "stale_cache", "the answer is the one from before"
    if _is_default(call.observation, left.found):
        return "env", "silent_default", "the answer is an empty or a cut one"
    wrote = any(one.digests[n] != one.digests[n - 1] for n in range(1, min(call.turn, len(one.digests))))
    before = [c.observation for c in one.calls if c.turn < call.turn and len(c.observation) > 2]
    if wrote and any(text[:300] == left.recorded for text in before):
        return "env", "stale_cache", "the answer shows values from before a write"
    return "env", "reset_leak", "another answer"


def _is_default(recorded: str, found: str) -> bool:
    text, data = recorded.strip().lower(), mapping(loaded(recorded))
    if text in _NOTHING and found.strip().lower() != text:
        return True
    is_hollow = data is not None and not any(data.values())  # only zeros, empty lists and nulls
    return len(recorded) < 0.5 * len(found) and (found.startswith(recorded) or is_hollow)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 60 else f"{flat[:60]}…")


# --- 4: regrading the same end gives another score ---


def regrade(case: Case) -> Iterator[Label]:
    """Compares the recorded reward with several new gradings of the same end."""
    evidence, one = case.evidence, case.played
    if evidence.missing:
        same, other = case.run.other_rewards(one)
        if not other:
            raise NotApplied(evidence.missing)
        why = f"episodes that are equal word for word earned otherwise {other} times, and like this {same} times"
        yield _label("verifier", why, "flaky_verifier", sure="proven" if other > same else "hint")
        return
    if (evidence.left is not None and evidence.left.field != "end") or one.broken is not None:
        return  # not the same end
    if not evidence.same_version:
        raise NotApplied("the environment is another version, whose verifier may rightly say otherwise")
    names = [name for name, value in evidence.criteria.items() if not _same(one.components.get(name), value)]
    if names or not all(_same(one.reward, score) for score in evidence.scores):
        said = ", ".join("no verdict" if score is None else f"{score:g}" for score in evidence.scores)
        which = f"; other verdicts of {', '.join(names)}" if names else ""
        recorded = "none" if one.reward is None else f"{one.reward:g}"
        why = f"the recorded reward is {recorded}, graded again the same end gets {said}{which}"
        yield _label("verifier", why, "flaky_verifier")


# --- 5: reads of overwritten values, and answers that do not depend on the question ---

_CRASH = re.compile(r"Traceback \(most recent call last\)|^\s+File \"[^\"]+\", line \d+", re.MULTILINE)
_CODE = {"code", "command", "cmd", "script", "source", "program", "python", "bash"}
"""Arguments whose program may crash by itself; a traceback is then a valid answer."""
_LIMIT = 0.95


def shadow(case: Case) -> Iterator[Label]:
    """Labels stale reads, answers repeated for unrelated arguments, crashes, and calls as long as their limit."""
    one, trace, left = case.played, case.played.trace, case.evidence.cold
    if left is not None:
        why = f"a copy of the same world answers {left.found[:80]!r}, where the world answered {left.recorded[:80]!r}"
        yield _label("env", why, "stale_cache", at=left)
    agrees = not case.evidence.missing and case.evidence.left is None  # The world does not contradict itself.
    for n, read in enumerate(case.run.shadows[one.index].suspects):
        likely: Confidence = "likely" if case.run.confirmed[read.mapping] and not agrees else "hint"
        why = f"{read.tool} set {read.field} of {read.key} to {read.new!r}, and a later read still shows {read.old!r}"
        yield _label("env", why, "stale_cache", at=read, sure="proven" if n in case.evidence.stale else likely)
    for call, count in repeated(one):
        why = f"{call.name} gave one answer to {count} calls with unrelated arguments"
        yield _label("env", why, "silent_default", at=call, sure="hint")
    for crash in [call for call in one.calls if call.fault is None and _CRASH.search(call.observation)][:1]:
        sure: Confidence = "hint" if _CODE & (crash.arguments or {}).keys() else "likely"
        yield _label("env", f"{crash.name} answered with a traceback", "races", at=crash, sure=sure, loud=True)
    limit, spent = trace.config.tool_timeout_s if trace is not None else None, one.seconds.get("tool_s", 0.0)
    if one.broken is None and limit is not None and spent >= _LIMIT * limit:
        why = f"the tools took {spent:.0f} s, as long as one call may take, and none of them timed out"
        yield _label("env", why, "silent_default", sure="hint")


# --- 6: the task itself is known to be broken ---


def task(case: Case) -> Iterator[Label]:
    """Labels proven findings of an audit about this task; without an audit, the task's baselines."""
    if case.baselines.missing and case.findings is None:
        raise NotApplied(f"no audit report, and the task was not probed: {case.baselines.missing}")
    for one in case.findings or ():
        if case.played.task in one.tasks:
            owned = one.class_ in ("unsolvable", "leak") or one.part == "T"
            proven = owned and one.confidence == "proven" and one.severity in ("error", "")
            owner: Owner = "task" if owned else _BY_PART.get(one.part, _UNKNOWN)
            why = f"an audit found {one.check} ({one.class_}) in this task"
            yield _label(owner, why, one.class_, sure="proven" if proven else "hint")
    if not case.baselines.missing:
        yield from _probed(case)


def _probed(case: Case) -> Iterator[Label]:
    baselines = case.baselines
    idle = "an agent that does nothing earns the whole reward"
    sure: Confidence = "proven" if baselines.trivial and case.played.solved else "hint"
    if baselines.trivial and case.freebies > _MAX_SHARE:
        yield _label("verifier", f"{idle} of most tasks: the verifier pays for nothing", "reward_hack", sure=sure)
    elif baselines.trivial:
        yield _label("task", f"{idle} of this task, so that a success says nothing", "unsolvable", sure=sure)
    elif baselines.free:
        yield _label("task", f"{idle}: doing nothing is right here, or everything is", "unsolvable", sure=sure)
    elif baselines.unsolvable:
        paid, nothing = baselines.solution, baselines.nothing
        why = f"the task's own solution {'fails' if paid is None else f'earns {paid:g}'}"
        why += f"; refused: {baselines.refused}" if baselines.refused else ""
        useless = paid is None or (nothing is not None and paid <= nothing)
        normal = case.solutions > _MAX_SHARE  # the whole reward is what solutions earn here
        # Where somebody did it, the solution is wrong, and not the task.
        sure = "proven" if not case.solvable and (useless or normal) else "hint"
        yield _label("task", why, "unsolvable", sure=sure)


# --- 7: rewards earned without the work ---

_CONSTANTS = {
    "", "yes", "no", "true", "false", "0", "1", "-1", "n/a", "na", "none", "null", "nan", "inf", "unknown", "[]", "{}",
    "ok", "done", "success", "pass", "passed", "correct", "i don't know", "a", "b", "c", "d", "\\boxed{}", ":", ".",
}  # fmt: skip
_VERIFIER = re.compile(
    r"(^|[\s/'\"])(tests?/|conftest\.py|test_\w+\.py|\w*(verifier|grader|reward|scorer)\w*\.(py|sh|js|txt|json))"
    r"|sys\.exit\(0\)|os\._exit\(0\)|pytest_(runtest|sessionfinish)|__eq__\s*=",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"git\s+(log|show|reflog|stash|fsck)\b.*(--all|--reflog|--branches|stash@|origin/|FETCH_HEAD)|git\s+fsck"
)
_WRITING = re.compile(
    r"write|edit|patch|create|append|replace|put|rm\b|mv\b|cp\b|sed\s+-i|tee\b|>|open\([^)]*['\"][wa]"
)
_CLAIM = re.compile(
    r"\b(done|completed?|success(ful(ly)?)?|resolved|fixed|updated|sent|booked|cancelled|refunded)\b", re.IGNORECASE
)


def exploit(case: Case) -> Iterator[Label]:
    """Labels success without a write, with a constant, or with access to the verifier; blames both owners."""
    one = case.played
    labels = [*itertools.islice(_touched(one), 1), *(_unearned(case) if one.solved else ())]
    yield from labels
    first = next((label for label in labels if label.confidence != "hint"), None)
    if one.solved and first is not None:
        why = f"the policy took the way that the verifier left open: {first.why}"
        yield _label("policy", why, " ".join(first.classes), at=first, sure=first.confidence)


def _touched(one: EpisodeLog) -> Iterator[Label]:
    for call in one.calls:
        sure: Confidence = "likely" if one.solved and not call.is_error else "hint"
        if _FUTURE.search(call.raw):
            why = "the agent looked for the future in the history of the repository"
            yield _label("verifier", why, "leak", at=call, sure=sure)
        elif _VERIFIER.search(call.raw) and _WRITING.search(f"{call.name} {call.raw}"):
            yield _label("verifier", f"{call.name} wrote where the verifier looks", "reward_hack", at=call, sure=sure)


def _unearned(case: Case) -> Iterator[Label]:
    evidence, one, baselines = case.evidence, case.played, case.baselines
    agrees = not evidence.missing and evidence.left is None and not evidence.moved
    if agrees and not baselines.missing and baselines.writes and not baselines.trivial:  # trivial: rule 6
        why = "the whole reward for a world in which nothing changed, though the task's own solution changes it"
        yield _label("verifier", why, "reward_hack false_resolution")
    said, gold = one.answer.strip(), one.gold if isinstance(one.gold, str) else None
    rights = [] if gold is None else [gold]
    rights += [case.task.answer] if case.task is not None and not case.task.solution else []
    happens = said.lower() in [right.strip().lower() for right in rights]
    if one.said and not one.calls and said.lower() in _CONSTANTS and not happens:
        right = baselines.free and not baselines.writes  # nothing may have been to be done
        sure: Confidence = "likely" if (gold is not None or case.task is not None) and not right else "hint"
        why = f"the whole reward for the constant answer {said!r}, without a call"
        yield _label("verifier", why, "reward_hack", at=len(one.said) - 1, sure=sure)
    if one.tools and all(call.is_error for call in one.calls) and _CLAIM.search(one.answer):
        why = "the agent claims success and got it, without a call that was carried out"
        yield _label("verifier", why, "false_resolution", sure="hint")


# --- 8: the simulated user contradicts its script ---

_FACT = re.compile(r"[\w.+-]+@[\w.-]+\w|#?\b[A-Za-z]*-?\d[\w-]*\b|\"[^\"\n]{3,60}\"")
_LONG = 6  # least characters of a fact that cannot match by accident


def simulator(case: Case) -> Iterator[Label]:
    """Labels a user who is silent, stops too early, repeats the agent, or reveals a sealed value."""
    one, users = case.played, [said for said in case.played.said if said.role != "agent"]
    if one.form == "quintain" or any(said.text.strip() for said in users):  # Some logs leave the user's words out.
        yield from itertools.islice(_silent(users), 1)
    if users:
        yield from _stopped(case, users)
        yield from itertools.islice(_echo(one), 1)
        yield from itertools.islice(_revealed(case, users), 1)


def _silent(users: list[Utterance]) -> Iterator[Label]:
    for said in users:
        is_empty = not (said.text.strip() or said.calls)
        if is_empty:
            yield _label("simulator", "the simulated user said nothing", at=said)
        elif said.finish == "length":
            yield _label("simulator", "the simulated user was cut off in the middle of a reply", at=said, sure="likely")


def _stopped(case: Case, users: list[Utterance]) -> Iterator[Label]:
    one = case.played
    if one.trace is None or one.said[-1].role == "agent" or one.end != "terminated" or one.solved:
        return
    agents, unsaid = [said for said in one.said if said.role == "agent"], _unsaid(case, users)
    named = ", ".join(repr(fact) for fact in unsaid[:3])
    if not any(said.text.strip() or said.calls for said in agents):
        what = "ended the conversation before the agent had said a word"
    elif unsaid and agents[-1].text.rstrip().endswith("?"):
        what = f"left a question unanswered and ended, without having said {named}"
    elif unsaid:
        yield _label("simulator", f"the simulated user ended without having said {named}", at=users[-1], sure="hint")
        return
    else:
        return
    yield _label("simulator", f"the simulated user {what}", at=users[-1])


def _unsaid(case: Case, users: list[Utterance]) -> list[str]:
    """Returns facts of the user's script that no message or prompt contains."""
    if case.task is None:
        return []
    facts = [fact.strip('"') for script in case.task.roles.values() for fact in _FACT.findall(script)]
    spoken = " ".join([plain(case.task.prompt), *(said.text for said in users)]).lower()
    return [fact for fact in dict.fromkeys(facts) if fact.lower() not in spoken]


def _echo(one: EpisodeLog) -> Iterator[Label]:
    before = ""
    for said in one.said:
        if said.role == "agent":
            before = said.text.strip()
        elif len(before) > 40 and said.text.strip() == before:
            yield _label("simulator", "the simulated user repeats the agent's own words", at=said, sure="likely")


def _revealed(case: Case, users: list[Utterance]) -> Iterator[Label]:
    one, task = case.played, case.task
    script = " ".join([*task.roles.values(), plain(task.prompt)]) if task is not None else ""
    truth = strings(task.truth) if task is not None else ()
    hidden = [text for text in truth if len(text) >= _LONG and text not in script]
    for said in users:
        seen = [call.observation for call in one.calls if call.turn < said.turn]
        seen += [other.text for other in one.said if other.turn < said.turn]
        for text in hidden:
            if text in said.text and not any(text in words for words in seen):
                why = f"the simulated user said what is sealed: {text[:60]!r}"
                yield _label("simulator", why, "leak", at=said, sure="likely")


# --- 9: calls against the advertised schema ---

_NO_TOOL = re.compile(r"\b(no (such )?tool|unknown (tool|function)|tool .{0,40}not (found|available))\b", re.IGNORECASE)
_NO_FIT = re.compile(
    r"unexpected keyword|unexpected argument|missing \d+ required|missing required|validation error"
    r"|invalid (type|schema)|unknown (field|parameter|argument)|expected `|does not match (the )?schema|is not of type"
    r"|extra inputs? (are|is) not permitted|field required",
    re.IGNORECASE,
)


def action(case: Case) -> Iterator[Label]:
    """Labels calls to unknown tools or against the schema as the policy's, and the reverse as the environment's."""
    if case.known_tools is None:
        raise NotApplied("no record of the tools that were advertised")
    cut = {said.turn for said in case.played.said if said.finish == "length"}
    given = set[Owner]()
    for call in case.played.calls:
        judged = _of_call(case, call, case.known_tools) if call.fault is None and call.turn not in cut else ()
        for owner, why, sure in judged:
            if owner not in given:
                loud, drifts = owner == "policy" or sure == "proven", "" if owner == "policy" else "action_drift"
                yield _label(owner, why, drifts, at=call, sure=sure, loud=loud)
            given.add(owner)


def _of_call(case: Case, call: Call, tools: dict[str, dict[str, Any]]) -> Iterator[tuple[Owner, str, Confidence]]:
    schema, arguments = tools.get(call.name, {}), call.arguments
    broken = "the arguments are no JSON object" if arguments is None else violation(schema, arguments)
    if call.name not in tools and call.is_error:
        yield "policy", f"the environment has no tool {call.name!r}", "likely"
    elif call.name not in tools:
        yield "env", f"{call.name!r} was carried out, and is not among the advertised tools", "hint"
    elif call.is_error and _NO_TOOL.search(call.observation):
        yield "env", f"{call.name!r} is advertised, and the environment answers that the tool does not exist", "proven"
    elif broken and call.is_error:
        yield "policy", f"{call.name} refused: {broken}", "likely"
    elif broken and call.answered and not case.lenient:
        yield "env", f"{call.name} accepted what its schema forbids: {broken}", "hint"
    elif not broken and call.is_error and _NO_FIT.search(call.observation):
        yield "env", f"{call.name} refused arguments that fit its schema: {call.observation[:120]}", "proven"


# --- 10: the trainer's own machinery lost a part of a reply ---

_MARKUP = re.compile(
    r"<tool_call>\s*(?P<a>\{.*?\})\s*</tool_call>|<\|tool_call\|>\s*(?P<b>\{.*?\})\s*(?:<\||$)"
    r"|\[TOOL_CALLS\]\s*(?P<c>\[.*?\])\s*$|```(?:json|tool_call)\s*(?P<d>\{.*?\})\s*```",
    re.DOTALL,
)
_OPEN = re.compile(r"<tool_call>(?!.*</tool_call>)|<\|tool_call\|>[^}]*$|\[TOOL_CALLS\][^\]]*$", re.DOTALL)
_SHARE = 0.9


def trainer(case: Case) -> Iterator[Label]:
    """Labels calls that were not parsed or not answered, and replies or tokens that were cut."""
    one, last = case.played, case.played.said[-1] if case.played.said else None
    for reply in one.said:
        if reply.role == "agent":
            yield from _parsed(reply, case.known_tools)
            yield from _cut(one, reply)
    for lost in [call for call in one.calls if last is not None and not call.answered and call.turn < last.turn][:1]:
        yield _label("trainer", f"the call of {lost.name!r} got no answer", at=lost)
    if one.end == "truncated" and "context" in one.reason:  # The agent's own limit is an outcome.
        why = f"the episode was cut short by its context ({one.reason})"
        yield _label("trainer", why, at=max(0, len(one.said) - 1), sure="hint")
    is_empty = last is not None and not (last.calls or last.text.strip() or last.reasoning.strip())
    if last is not None and is_empty and last.role == "agent" and one.calls and not one.solved:
        why = "the last reply is empty: the agent gave up, or its endpoint did"
        yield _label("infra", why, at=last, sure="hint")


def _parsed(said: Utterance, tools: dict[str, dict[str, Any]] | None) -> Iterator[Label]:
    match = _MARKUP.search(said.text) if not said.calls else None
    value = loaded(next(text for text in match.groups() if text)) if match is not None else None
    name = (mapping((sequence(value) or [value])[0]) or {}).get("name")
    if isinstance(name, str) and (tools is None or name in tools):  # else the model wrote no possible call
        why = f"the reply holds a call of {name!r} that was not made"
        yield _label("trainer", why, at=said, sure="proven" if tools is not None else "likely")


def _cut(one: EpisodeLog, said: Utterance) -> Iterator[Label]:
    if said.drawn is not None and said.counted is not None and said.drawn < _SHARE * said.counted - 1:
        why = f"the record holds {said.drawn} of the {said.counted} tokens that were drawn"
        yield _label("trainer", why, at=said)
    elif said.finish == "length":
        broken = any(call.arguments is None for call in one.calls_of(said.turn)) or _OPEN.search(said.text)
        where = "in the middle of a call" if broken else "at its limit of tokens"
        yield _label("trainer", f"the reply was cut off {where}", at=said, sure="likely" if broken else "hint")


# --- all of them ---

RULES: dict[str, Rule] = {
    "boundary": boundary, "reward": reward, "replay": replay, "regrade": regrade, "shadow": shadow, "task": task,
    "exploit": exploit, "simulator": simulator, "action": action, "trainer": trainer,
}  # fmt: skip
"""Rules by name, in order."""
NAMES = (*RULES, "policy")  # names of the rules; rule n is at index n - 1


def labels_of(case: Case) -> tuple[list[Label], dict[int, str]]:
    """Returns the labels of rules 1 to 10, and why some of them could not be applied."""
    labels: list[Label] = []
    not_checked: dict[int, str] = {}
    for number, rule in enumerate(RULES.values(), 1):
        try:
            labels += [msgspec.structs.replace(label, rule=number) for label in rule(case)]
        except NotApplied as why:
            not_checked[number] = str(why)
    return labels, not_checked


def policy(case: Case, not_checked: dict[int, str]) -> Label:
    """Returns the label of rule 11: the policy's, with a confidence that depends on the rules that were applied."""
    one = case.played
    refused = next((call for call in one.calls if call.is_error and call.fault is None), None)
    at = refused if refused is not None and not one.solved else one.said[-1] if one.said else None
    paid = "earned its reward" if one.solved else "did not earn the whole reward"
    why = f"nothing speaks against the world, so the policy {paid}"
    return _label("policy", why, at=at, sure="hint" if {3, 4} & not_checked.keys() else "likely", loud=True)
