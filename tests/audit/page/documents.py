"""Report of an audit as plain data, with everything that a page can show, and hostile texts."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from quintain.audit.kernel.finding import CLASSES, CheckResult, Finding
from quintain.audit.kernel.probe import Probe, call, reset

HOSTILE = '<script>window.broken = 1</script><img src="https://evil.example/x" onerror="window.broken = 1">'
CLOSING = "</style></script></pre></td><svg onload=alert(1)><a href=javascript:alert(1)>'\"&amp;"
HIDDEN = "left \u202egnihtemos\u202c \x1b[31m \x00 \ud800 end"
FRESH = {"id": 7, "status": "done", "note": "a note that is long enough to need a line of its own"}
STALE = FRESH | {"status": "open"}


def _line(do: str, name: str, observed: Any, **more: Any) -> dict[str, Any]:
    return {"do": do, "name": name, "observed": observed, **more}


def stale() -> Finding:
    """Returns a proven error with a second probe, state changes, and reasons of the score."""
    look = _line("call", "look", json.dumps(STALE), arguments={"id": 7})
    done = _line("call", "finish", "ok", arguments={"id": 7})
    again = look | {"observed": json.dumps(FRESH)}
    reasons = [
        {"level": "step", "name": "sound_call", "value": 1.0, "turn": 0, "step": 0},
        {"level": "trajectory", "name": "done", "value": 0.5, "reason": "no letter was sent"},
    ]
    changes = [None, {}, {"tasks/7/status": ["open", "done"], "log/1": [None, "finish"], "locks/7": ["held", None]}, {}]
    return Finding(
        check="x.reads",
        class_="stale_cache",
        part="S",
        severity="error",
        confidence="proven",
        title="look does not show what finish wrote",
        tasks=("one", "two", "three", "four"),
        trajectory=[_line("reset", "one", "Finish it."), look, done, look],
        beside=[{"context": {"hash_seed": 1}, "trajectory": [_line("reset", "one", "Finish it."), done, again]}],
        expected=FRESH,
        observed=STALE,
        teaches="to act twice",
        probes=(Probe((reset("one"), call("look", {"id": 7}))),),
        replay="quintain replay-finding 'a folder/finding-1.json'",
        details={"changes": changes, "reasons": reasons},
    )


def hostile() -> Finding:
    """Returns a finding whose every text tries to break out of the page."""
    crashed = {"do": "call", "name": CLOSING, "arguments": {HOSTILE: CLOSING}, "crashed": HOSTILE, "where": CLOSING}
    drawing = {"labels": [HOSTILE, CLOSING], "counts": {HOSTILE: [3, 4], CLOSING: [1, 0]}}
    return Finding(
        check=HOSTILE,
        class_="races",
        part="V",
        severity="warning",
        confidence="likely",
        title=HOSTILE + HIDDEN,
        tasks=(CLOSING,),
        trajectory=[_line("reset", HOSTILE, CLOSING * 30), crashed],
        beside=[{"context": {"zone": HOSTILE}, "trajectory": [_line("reset", HOSTILE, HOSTILE * 30)]}] * 3,
        expected={HOSTILE: CLOSING * 5},
        observed={"histograms": {HOSTILE: drawing}, "more": HOSTILE},
        teaches=HOSTILE,
        where=CLOSING,
        probes=(Probe((reset("one"),)),),
        replay=CLOSING,
        details={"changes": [{HOSTILE: [CLOSING, HOSTILE]}, None], "reasons": HOSTILE},
    )


def read() -> Finding:
    """Returns a static finding."""
    return Finding(
        check="x.source",
        class_="silent_default",
        part="V",
        severity="note",
        confidence="hint",
        title="an exception is swallowed",
        where="/srv/desk.py:12",
        observed="except Exception: return 0.0",
        replay="quintain audit desk.py:Desk --check x.source",
    )


def checks() -> list[CheckResult]:
    """Returns a check result of each status."""
    return [
        CheckResult(check="x.reads", class_="stale_cache", status="checked", about="Is it fresh?", probes=9, looked=40),
        CheckResult(
            check="x.source", class_="silent_default", status="partly", reason="the budget was spent on the way"
        ),
        CheckResult(check="x.load", class_="races", status="not_checked", reason=HOSTILE, about=CLOSING),
        CheckResult(check="x.pure", class_="judge", status="checked", about="Is it blind?", probes=2, looked=2),
    ]


def document(*findings: Finding, covered: bool = False, **more: Any) -> dict[str, Any]:
    """Returns a report of these findings; `covered` by a check of every class."""
    every = [CheckResult(check=f"x.{name}", class_=name, status="checked") for name in CLASSES] if covered else checks()
    said = {one.class_: "checked" if one.status != "not_checked" else f"not_checked: {one.reason}" for one in every}
    made: dict[str, Any] = {
        "schema": 1,
        "subject": "desk.py:Desk",
        "options": {"twin": "rust"},
        "kind": "plain",
        "digest": "49915ac2c896ded7fd4aeb1eeb1137d5",
        "coverage": {name: said.get(name, "not_checked: no check of this class was asked for") for name in CLASSES},
        "findings": [msgspec.to_builtins(one) for one in findings],
        "checks": [msgspec.to_builtins(one) for one in every],
        "tasks": {"looked_at": 20, "there_are": 1000, "left_out": 0},
        "failure_rate": rate(0, 59, 0.0, 0.0495),
        "properties": [],
        "seed": 3,
        "seconds": 12.345,
    }
    return made | more


def rate(failures: int, episodes: int, low: float, high: float) -> dict[str, Any]:
    """Returns a failure rate with the scores of its episodes."""
    scores = {"0": 9, "0.5": 20, "1": 30} if episodes else {}
    return {"failures": failures, "episodes": episodes, "low": low, "high": high, "scores": scores}
