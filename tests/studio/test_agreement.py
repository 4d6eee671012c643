"""Agreement of reviewers, against worked examples of the literature and packages that compute the same."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.cli import main
from quintain.studio.agreement import (
    agreement,
    bootstrap,
    clopper_pearson,
    cohen_kappa,
    coincidences,
    krippendorff_alpha,
)
from quintain.studio.reviews import Review, Reviews, Target
from quintain.studio.taxonomy import SHIPPED, Taxonomy
from tests.studio.runs import trace, write

TAXONOMY = Taxonomy.parse(SHIPPED.read_text("utf-8"))


def table(*rows: tuple[int, ...]) -> dict[tuple[str, str], float]:
    return {(str(a), str(b)): float(count) for a, row in enumerate(rows) for b, count in enumerate(row)}


def alpha(*reviewers: str) -> float | None:
    """Returns the alpha of reviewers, whose labels are letters; a point is a gap."""
    total = Counter[tuple[str, str]]()
    for unit in zip(*reviewers, strict=True):
        total.update(coincidences([label for label in unit if label != "."]))
    return krippendorff_alpha(total)


def test_kappa_is_that_of_cohen_1960() -> None:
    # Cohen (1960), "A coefficient of agreement for nominal scales", table 1, as counts of 200.
    assert cohen_kappa(table((88, 14, 18), (10, 40, 10), (2, 6, 12))) == pytest.approx(0.492, abs=5e-4)


def test_alpha_is_that_of_krippendorff_2011() -> None:
    # Krippendorff (2011), "Computing Krippendorff's alpha-reliability", examples A, B and C.
    assert alpha("0100000010", "1110010000") == pytest.approx(0.095, abs=5e-4)
    assert alpha("aabbdcccedda", "babbbccceddd") == pytest.approx(0.692, abs=5e-4)
    four = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
    assert alpha(*four) == pytest.approx(0.743, abs=5e-4)


def test_an_agreement_that_chance_alone_gives_is_undefined() -> None:
    assert cohen_kappa({}) is None
    assert cohen_kappa(table((7, 0), (0, 0))) is None
    assert (alpha("aaa", "aaa"), alpha("a.", ".b")) == (None, None)
    assert cohen_kappa(table((5, 0), (0, 5))) == alpha("ab", "ab") == 1.0


LABELS = st.lists(st.tuples(*[st.sampled_from("abc.")] * 3), min_size=2, max_size=20)


@given(units=LABELS)
def test_alpha_and_kappa_are_those_of_other_packages(units: list[tuple[str, ...]]) -> None:
    krippendorff = pytest.importorskip("krippendorff", reason="pip install krippendorff")
    metrics = pytest.importorskip("sklearn.metrics", reason="pip install scikit-learn")
    columns = ["".join(column) for column in zip(*units, strict=True)]
    found = alpha(*columns)
    values = [[float("nan") if one == "." else ord(one) for one in column] for column in columns]
    if found is not None:
        assert krippendorff.alpha(values, level_of_measurement="nominal") == pytest.approx(found)
    pairs = Counter((a, b) for a, b, _ in units)
    found = cohen_kappa(pairs)
    if found is not None:
        assert metrics.cohen_kappa_score([*columns[0]], [*columns[1]]) == pytest.approx(found)


def test_the_interval_holds_the_value_and_shrinks_with_tasks() -> None:
    clusters = [{("a", "a"): 2.0}, {("b", "b"): 2.0}, {("a", "b"): 1.0, ("a", "a"): 1.0}]
    few, many = bootstrap(clusters, cohen_kappa), bootstrap(clusters * 20, cohen_kappa)
    assert few == bootstrap(clusters, cohen_kappa)
    for one in (few, many):
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high
    assert many.high - many.low < few.high - few.low  # type: ignore[operator]
    assert bootstrap(clusters[:1], cohen_kappa).low is None


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    # Exact by hand: with no hit in n, the upper bound is 1 - 0.025^(1/n).
    assert clopper_pearson(0, 10) == pytest.approx((0.0, 1 - 0.025**0.1))
    assert clopper_pearson(10, 10) == pytest.approx((0.025**0.1, 1.0))
    low, high = clopper_pearson(11, 12)
    assert (round(low, 3), round(high, 3)) == (0.615, 0.998)


_IDS = itertools.count()


def review(reviewer: str, task: str, owner: str, **more: Any) -> Review:
    fields: dict[str, Any] = {"kind": "verdict", "blind": ("reviewers",), "at": datetime(2026, 1, 1, tzinfo=UTC)}
    target = Target(task=task, digest="d")
    names: dict[str, Any] = {"reviewer": reviewer, "owner": owner}
    return Review(version=1, id=str(next(_IDS)), target=target, **names | fields | more)


def test_only_blind_verdicts_of_several_people_count() -> None:
    given = [
        *(review("ada", f"t{n}", "env", modes=("env.race",)) for n in range(4)),
        *(review("ben", f"t{n}", "env" if n else "policy") for n in range(3)),
        review("ben", "t3", "env", kind="inherited"),
        review("cleo", "t1", "policy", blind=()),
        review("ada", "t0", "task", kind="decided"),
    ]
    found = agreement(given, TAXONOMY, {})
    assert (found["of"], found["episodes"], found["few"], found["not_blind"]) == (["ada", "ben"], 3, True, 1)
    assert found["owner"]["statistic"] == "kappa"
    assert found["owner"]["confusion"] == (("env", "env", 2), ("env", "policy", 1))
    assert found["owner"]["labels"] == {"env": 5, "policy": 1}
    assert found["owner"]["agreed"] == pytest.approx(2 / 3)
    assert found["mode"]["agreed"] == 0
    ((key, decided, owners),) = [(one["key"], one["decided"], one["owners"]) for one in found["disagreements"]]
    assert (key, decided, owners) == (("t0", 0, 0), True, {"ada": "env", "ben": "policy"})
    three = agreement([*given, review("cleo", "t2", "env")], TAXONOMY, {})
    assert (three["owner"]["statistic"], three["owner"]["confusion"]) == ("alpha", ())
    assert agreement(given, TAXONOMY, {}, of=["ada"])["episodes"] == 0


def test_first_wrong_turns_and_programs_are_compared() -> None:
    given = [
        *(
            review(name, f"t{n}", "env", first={"turn": 3 + n * (name == "ben")})
            for n in range(3)
            for name in ("ada", "ben")
        ),
        review("ada", "p", "policy"),
    ]
    given = [msgspec.convert(msgspec.to_builtins(one), Review) for one in given]
    programs = {("t0", 0, 0): "env", ("t1", 0, 0): "verifier", ("t2", 0, 0): "policy", ("p", 0, 0): "env"}
    found = agreement(given, TAXONOMY, programs)
    assert found["first"] == {"both": 3, "equal": 1, "within_one": 2}
    ada = found["programs"]["ada"]
    assert (ada["episodes"], ada["precision"][0], ada["recall"][0]) == (4, 2 / 3, 2 / 3)
    assert found["programs"]["ben"]["precision"][0] == 1


def test_the_command_prints_the_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    traces = [trace(f"t{n}") for n in range(4)]
    folder = write(tmp_path / "run", traces)
    digests = [json.loads(line)["digest"] for line in (folder / "traces.jsonl").read_bytes().splitlines()]
    for name, owners in (("ada", "env env policy policy"), ("ben", "env policy policy policy")):
        lines = [
            {
                "kind": "verdict",
                "owner": owner,
                "blind": ["reviewers"],
                "target": Target(task=f"t{n}", digest=digests[n]),
            }
            for n, owner in enumerate(owners.split())
        ]
        stale = {"kind": "verdict", "owner": "env", "target": Target(task="t3", member=1, digest="other")}
        Reviews(folder).add(name, [*lines, stale])
    with pytest.raises(SystemExit):
        main(["reviews", str(write(tmp_path / "alone", traces))])
    assert "No blind verdicts, and 0 others." in capsys.readouterr().out
    for arguments in (["reviews", str(folder), "--json"], ["reviews", str(folder), "--of", "ada,ben"]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert not left.value.code
    write(tmp_path / "runs" / "one", traces)
    write(tmp_path / "runs" / "two", traces)
    with pytest.raises(SystemExit) as left:
        main(["reviews", str(tmp_path / "runs")])
    assert left.value.code == 2
    document, text = capsys.readouterr().out.split("\n}\n")
    found = json.loads(document + "}")
    assert found["owner"]["estimate"]["value"] == pytest.approx(0.5)
    assert (found["stale"], [one["n"] for one in found["disagreements"]]) == (2, [1])
    assert "ada, ben: 4 episodes judged by several, blindly (few" in text
    assert "Disagreements on the owner: 1, not decided 1" in text
    assert "Left out: 2 reviews, of another episode than the run has" in text
