"""The corpus of sound subjects, and the gate on false findings in them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from quintain import plugins

FOLDER = Path(__file__).parents[2] / "bench" / "audit"
CORPUS, INSTALL, CASES = (
    importlib.import_module(f"bench.audit.{name}") for name in ("_sound_corpus", "_peer_install", "detectors")
)
GATE: Any = plugins._from_file(FOLDER / "sound.py")
TRUE = CORPUS.TrueFinding("c.known", "the door", "It is open.", "assert door.open")
SOUND = CORPUS.Sound(CASES.Case("clean", "door", CASES.Subject("door.py:Door")), "sound", true=(TRUE,))


def finding(check: str, severity: str = "error", confidence: str = "proven") -> dict[str, str]:
    return {"check": check, "severity": severity, "confidence": confidence, "title": "the door is open"}


def verdict(*found: dict[str, str], **more: Any) -> Any:
    return GATE.judged(SOUND, {"name": "door", "found": list(found), "seconds": 1.0} | more)


def missed(*verdicts: Any) -> set[str]:
    """Returns the names of the goals that are missed."""
    return {one["name"] for one in GATE.rows(verdicts) if one["ok"] is False}


def test_gate_passes_without_findings_and_with_true_ones_notes_and_hints() -> None:
    one = verdict(finding("c.known"), finding("c.note", "note"), finding("c.hint", confidence="hint"))
    assert [item["check"] for item in one.true] == ["c.known"]
    assert missed(one) == set()


def test_gate_misses_its_goal_when_a_proven_error_is_false() -> None:
    assert missed(verdict(), verdict(finding("c.other"))) == {"proven errors", "door: proven errors"}


@pytest.mark.parametrize("item", [finding("c.other", "warning"), finding("c.other", confidence="likely")])
def test_gate_misses_its_goal_when_warnings_are_too_many(item: dict[str, str]) -> None:
    assert missed(verdict(item), verdict(), verdict()) == {"warnings per world"}
    assert missed(verdict(item), verdict(), verdict(), verdict()) == set()


@pytest.mark.parametrize("more", [{"error": "the subject does not load"}, {"broke": ["c.one: the check itself broke"]}])
def test_gate_misses_its_goal_when_a_world_was_not_audited(more: dict[str, object]) -> None:
    assert missed(verdict(**more)) == {"worlds not audited"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("env = 1\nclass World:\n    def reset(self): ...\n    def score(self): ...\n", ["world.py:env"]),
        ("class World:\n    def reset(self): ...\n    def score(self): ...\nclass Row: ...\n", ["world.py:World"]),
        ('SPECS = ("other/place.py:A", "other/place.py:B")\nenv = 1\n', ["place.py:A", "place.py:B"]),
        ("from collections import OrderedDict\n", []),
        ("def score(answer, reference): ...\n", ["world.py:score"]),
        ("env = 1\ndef score(answer, reference): ...\n", ["world.py:env", "world.py:score"]),
    ],
)
def test_worlds_of_a_module_are_found(text: str, found: list[str], tmp_path: Path) -> None:
    file = tmp_path / "world.py"
    file.write_text(text)
    file.with_suffix(".jsonl").touch()
    subjects = [one.case.subject for one in CORPUS.worlds(file)]
    assert [one.spec.rpartition("/")[2] for one in subjects] == found
    assert [bool(one.cases) for one in subjects] == [name.endswith(":score") for name in found]


def test_public_environments_name_known_packages_and_differ() -> None:
    listed = list(CORPUS.public())
    assert len({one.case.name for one in listed}) == len(listed) >= 15
    assert all(one.needs in INSTALL.PUBLIC and (one.case.subject.spec or one.serves) for one in listed)


def test_packages_are_in_the_path_only_while_a_subject_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "lib" / "python3" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.setattr(GATE, "python", lambda needs: tmp_path / "bin" / "python")
    monkeypatch.setenv("PYTHONPATH", "before")
    with GATE.prepared(SOUND._replace(needs="marble")) as case:
        assert GATE.os.environ["PYTHONPATH"].split(GATE.os.pathsep) == [str(packages), "before"]
        assert case == SOUND.case
    assert GATE.os.environ["PYTHONPATH"] == "before"


def test_a_subject_is_skipped_when_its_packages_cannot_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(needs: str) -> None:
        raise INSTALL.Impossible(f"{needs}: no network")

    monkeypatch.setattr(GATE, "python", fails)
    assert GATE.audited(SOUND._replace(needs="marble"), 1.0) == {"name": "door", "skipped": "marble: no network"}
