"""Reviews, taxonomy and samples: their files, and what the server answers, refuses and hides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="pip install 'quintain[studio]'")
pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from quintain.audit.triage.labels import CLASSES
from quintain.audit.triage.labels import OWNERS as TRIAGE_OWNERS
from quintain.errors import UsageError
from quintain.studio import access, samples
from quintain.studio.app import build
from quintain.studio.episodes import EpisodeTable
from quintain.studio.folders import Runs
from quintain.studio.reviews import OWNERS, Review, Reviews, Target, current, reviewer_name
from quintain.studio.taxonomy import SHIPPED, Taxonomy, TaxonomyFile
from tests.studio.runs import Reader, line, trace, write

PORT = 7414
ORIGIN = f"http://127.0.0.1:{PORT}"
TRACES = [trace(f"t{n}", m, score=float(m > n % 3)) for n in range(6) for m in range(3)]
Open = Callable[[str | None], TestClient]
NAMES = ("label", "mode", "by", "owner")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "runs" / "first", TRACES)


@pytest.fixture
def studio(folder: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens the studio as a reviewer; None for one that only reads."""
    opened = list[Runs]()

    def client(reviewer: str | None) -> TestClient:
        runs = Runs([folder.parent], tmp_path / "cache")
        opened.append(runs)
        app = build(runs, "secret", PORT, reviewer=reviewer)
        made = TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, cookies={access.COOKIE: "secret"})
        made.get("/api/runs/first/columns")
        return made

    yield client
    for runs in opened:
        runs.close()


def said(client: TestClient, row: int, owner: str = "policy", **more: Any) -> dict[str, Any]:
    body = {"kind": "verdict", "rows": [row], "owner": owner} | more
    answer = client.post("/api/runs/first/reviews", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()[0]
    return found


def column(client: TestClient, name: str) -> list[Any]:
    reader = Reader()
    reader.apply(client.get("/api/runs/first/columns").content)
    return reader.columns[name]


def labels(client: TestClient, query: str = "") -> set[tuple[str, str, int | None, str, bool]]:
    answer = client.get(f"/api/runs/first/reviews{query}").json()
    return {(one["reviewer"], one["kind"], one["n"], one.get("owner", ""), one["stale"]) for one in answer["reviews"]}


_LINES = st.builds(
    Review,
    version=st.just(1),
    id=st.sampled_from("abcdef"),
    at=st.integers(0, 3).map(lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n)),
    reviewer=st.sampled_from(["ada", "ben"]),
    kind=st.sampled_from(["verdict", "note", "removed", "inherited", "decided"]),
    target=st.builds(Target, task=st.sampled_from("xy"), digest=st.just("d")),
    owner=st.sampled_from(OWNERS[:2]),
    of=st.lists(st.sampled_from("abcdef"), max_size=2).map(tuple),
)


@given(lines=st.lists(_LINES, max_size=12, unique_by=lambda one: (one.reviewer, one.id)), data=st.data())
def test_any_order_of_lines_gives_the_same_labels(lines: list[Review], data: st.DataObject) -> None:
    expected = current(lines)
    assert current(data.draw(st.permutations(lines)) + lines[:2]) == expected
    assert len({(one.reviewer, one.kind == "decided", one.target.key) for one in expected}) == len(expected)


def test_the_last_verdict_counts_and_undo_brings_back_the_one_before(studio: Open, folder: Path) -> None:
    client = studio("ada")
    said(client, 4, "env", modes=["env.stale_read"], first={"turn": 2, "step": 0}, sure="likely", seconds=51.5)
    second = said(client, 4, "policy", note="on second thought")
    assert labels(client) == {("ada", "verdict", 4, "policy", False)}
    answer = client.post("/api/runs/first/reviews", json={"kind": "removed", "of": [second["id"]]})
    assert answer.status_code == 200
    assert labels(client) == {("ada", "verdict", 4, "env", False)}
    lines = [json.loads(line) for line in (folder / "reviews" / "ada.jsonl").read_bytes().splitlines()]
    assert [one["kind"] for one in lines] == ["verdict", "verdict", "removed"]
    assert {"version", "id", "at", "reviewer", "target", "owner", "modes", "first", "sure", "taxonomy"} <= {*lines[0]}
    assert lines[0]["target"] == {"task": "t1", "member": 1, "digest": json.loads(line(TRACES[4]))["digest"]} | {
        "attempt": 0
    }


def test_reviews_of_others_are_merged_and_bad_lines_named(studio: Open, folder: Path) -> None:
    said(studio("ada"), 0, "env")
    said(studio("ben"), 0, "task")
    file = folder / "reviews" / "ben.jsonl"
    forged = file.read_text().replace('"ben"', '"ada"')
    file.write_text(
        file.read_text() + "<<<<<<< ours\n" + forged + file.read_text().replace('"version":1', '"version":9') + "{torn"
    )
    client = studio("ben")
    assert labels(client) == {("ada", "verdict", 0, "env", False), ("ben", "verdict", 0, "task", False)}
    warnings = client.get("/api/runs/first/reviews").json()["warnings"]
    assert [warning.partition(" is not")[0] for warning in warnings] == [
        f"reviews/ben.jsonl, line {n}," for n in (2, 3, 4, 5)
    ]
    said(client, 1, "infra")
    assert ("ben", "verdict", 1, "infra", False) in labels(client)


def test_a_clock_that_was_set_back_keeps_the_order(tmp_path: Path) -> None:
    reviews, target = Reviews(tmp_path), Target(task="a", digest="d")
    (first,) = reviews.add("ada", [{"kind": "verdict", "owner": "env", "target": target}])
    late = first.at + timedelta(days=1)
    file = tmp_path / "reviews" / "ada.jsonl"
    file.write_text(file.read_text().replace(first.at.isoformat().replace("+00:00", "Z"), late.isoformat()))
    reviews.add("ada", [{"kind": "verdict", "owner": "task", "target": target}])
    assert [one.owner for one in current(reviews.all()[0])] == ["task"]


def test_a_label_of_another_episode_is_stale(studio: Open, folder: Path) -> None:
    client = studio("ada")
    said(client, 0, "env")
    said(client, 5, "env")
    write(folder, [trace("t0", 0, say="other"), *TRACES[1:5]])
    client.get("/api/runs/first/columns")
    assert labels(client) == {("ada", "verdict", 0, "env", True), ("ada", "verdict", None, "env", True)}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "verdict", "rows": [99], "owner": "env"}, "not all of these episodes: 99"),
        ({"kind": "verdict", "rows": [1]}, "a verdict names one row and an owner"),
        ({"kind": "note", "rows": [1], "note": " "}, "a note has a text"),
        ({"kind": "verdict", "rows": [1], "owner": "nature"}, "not a review"),
        ({"kind": "verdict", "rows": [1], "owner": "env", "modes": ["policy.loop"]}, "no mode 'policy.loop' of env"),
        ({"kind": "verdict", "rows": [1], "owner": "env", "reviewer": "ben"}, "unknown field `reviewer`"),
        ({"kind": "removed", "of": ["1"]}, "removed names reviews of ada"),
        ({"kind": "removed"}, "removed names reviews of ada"),
        ({"kind": "inherited", "rows": [1], "of": ["1"]}, "inherited names one review of ada"),
        ({"kind": "verdict", "rows": [1], "owner": "env", "sample": "../x"}, "a sample's name has letters"),
    ],
)
def test_a_wrong_review_is_refused(studio: Open, folder: Path, body: dict[str, Any], words: str) -> None:
    answer = studio("ada").post("/api/runs/first/reviews", json=body)
    assert (answer.status_code, words in answer.json()["detail"]) == (400, True), answer.text
    assert not list(folder.glob("reviews/*.jsonl"))


def test_writes_need_the_own_page_and_a_studio_that_writes(studio: Open, folder: Path) -> None:
    body = {"kind": "verdict", "rows": [0], "owner": "env"}
    client = studio("ada")
    for origin in ("http://evil.example", "null"):
        assert client.post("/api/runs/first/reviews", json=body, headers={"origin": origin}).status_code == 403
    del client.headers["origin"]
    assert client.post("/api/runs/first/reviews", json=body).status_code == 403
    reader = studio(None)
    assert reader.post("/api/runs/first/reviews", json=body).status_code == 405
    assert reader.put("/api/taxonomy", content="version = 1").status_code == 405
    assert not (folder / "reviews").exists()


def test_a_shape_inherits_a_verdict_apart_from_what_was_read(studio: Open) -> None:
    client = studio("ada")
    source = said(client, 0, "verifier", modes=["verifier.judge"])
    said(client, 2, "task")
    body = {"kind": "inherited", "rows": [0, 1, 2, 3], "of": [source["id"]]}
    added = client.post("/api/runs/first/reviews", json=body).json()
    assert [(one["n"], one["owner"], one["modes"]) for one in added] == [
        (n, "verifier", ["verifier.judge"]) for n in (1, 3)
    ]
    assert {one[1:4] for one in labels(client)} == {
        ("verdict", 0, "verifier"),
        ("inherited", 1, "verifier"),
        ("verdict", 2, "task"),
        ("inherited", 3, "verifier"),
    }
    back = {"kind": "removed", "of": [one["id"] for one in added]}
    assert len(client.post("/api/runs/first/reviews", json=back).json()) == 2
    assert {one[1:4] for one in labels(client)} == {("verdict", 0, "verifier"), ("verdict", 2, "task")}


def test_a_sample_is_drawn_by_its_seed_and_stratum(studio: Open, folder: Path) -> None:
    client = studio("ada")
    asked = {"name": "week-48", "seed": 3, "size": 8, "by": "score"}
    answer = client.post("/api/runs/first/samples", json=asked)
    assert answer.json() == {"name": "week-48", "episodes": 8, "strata": {"0": 12, "1": 6}}
    drawn = samples.read(folder, "week-48")
    assert sorted(one.stratum for one in drawn.episodes) == ["0"] * 4 + ["1"] * 4
    rows = [(Target(task=t.task, member=t.member, digest="d"), "") for t in TRACES]
    one, other = (samples.draw(asked | {"seed": seed}, rows) for seed in (3, 4))
    assert one == samples.draw(asked, rows[::-1]) != other
    again = client.post("/api/runs/first/samples", json=asked)
    assert (again.status_code, "choose another name" in again.json()["detail"]) == (400, True)
    assert "by is one of score" in client.post("/api/runs/first/samples", json=asked | {"by": "seed"}).text
    assert "not a sample" in client.post("/api/runs/first/samples", json=asked | {"name": "../x"}).text


def test_each_reviewer_has_an_order_of_his_own(studio: Open) -> None:
    client = studio("ada")
    client.post("/api/runs/first/samples", json={"name": "all", "seed": 3, "size": 18})
    orders = [
        [one["n"] for one in studio(name).get("/api/runs/first/samples/all").json()["episodes"]]
        for name in ("ada", "ben", "ada")
    ]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(18))


def test_a_blind_sample_hides_rewards_and_other_reviewers(studio: Open) -> None:
    client = studio("ada")
    for name, blind in (("blind", ["triage", "reviewers", "reward"]), ("open", [])):
        client.post("/api/runs/first/samples", json={"name": name, "seed": 3, "size": 9, "blind": blind})
    said(studio("ben"), 1, "env")
    said(client, 2, "task", sample="blind")
    assert labels(client, "?sample=blind") == {("ada", "verdict", 2, "task", False)}
    assert len(labels(client, "?sample=open")) == len(labels(client)) == 2
    hidden = client.get("/api/runs/first/samples/blind/1").json()["trace"]
    shown = client.get("/api/runs/first/samples/open/1").content
    assert shown == line(TRACES[1])
    assert not {"score", "rewards", "reason", "criteria"} & hidden.keys()
    assert all("rewards" not in turn for turn in hidden["turns"])
    assert len(hidden["turns"]) == 3
    assert said(client, 3, "env", sample="blind")["blind"] == ["triage", "reviewers", "reward"]
    assert "blind" not in said(client, 4, "env")


def test_a_taxonomy_is_replaced_by_one_editor_at_a_time(studio: Open, folder: Path) -> None:
    client = studio("ada")
    shipped = client.get("/api/taxonomy").json()
    text = shipped["text"].replace("revision = 1", "revision = 2") + '\n[[mode]]\nid = "infra.slow"\nkey = "a"\n'
    answer = client.put("/api/taxonomy", content=text, headers={"if-match": f'"{shipped["tag"]}"'})
    assert (answer.json()["revision"], answer.json()["modes"][-1]["id"]) == (2, "infra.slow")
    assert (folder.parent / "taxonomy.toml").read_text() == text
    assert said(client, 0, "infra", modes=["infra.slow"])["taxonomy"] == 2
    late = client.put("/api/taxonomy", content=text, headers={"if-match": shipped["tag"]})
    assert (late.status_code, "another editor" in late.json()["detail"]) == (400, True)
    file = TaxonomyFile(folder.parent)
    renamed = text.replace("infra.slow", "infra.fast").replace("revision = 2", "revision = 3")
    for wrong, words in ((text, "must be above 2"), (renamed, "missing: infra.slow")):
        with pytest.raises(UsageError, match=words):
            file.write(wrong, file.read()[1])


def mode(**fields: str) -> str:
    return "[[mode]]\n" + "".join(f'{name} = "{value}"\n' for name, value in fields.items())


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        (mode(id="nature.storm"), "the owner is one of"),
        (mode(id="env.a") * 2, "stands there twice"),
        (mode(id="env.a", key="a") + mode(id="env.b", key="a"), "has the key 'a'"),
        (mode(id="env.a", key="j"), "another meaning"),
        (mode(id="env.a", merged="env.b"), "merged into 'env.b'"),
        (mode(id="env.a", merged="env.b") + mode(id="env.b", merged="env.a"), "merged back"),
        ("x", "not a taxonomy"),
        (mode(id="Env"), "not a taxonomy"),
    ],
)
def test_faults_of_a_taxonomy_are_named(modes: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Taxonomy.parse(f"version = 1\nrevision = 1\n{modes}")


def test_counts_follow_a_merge() -> None:
    modes = mode(id="env.a", merged="env.b") + mode(id="env.b", merged="env.c") + mode(id="env.c")
    text = f"version = 1\nrevision = 2\n{modes}"
    assert [Taxonomy.parse(text).resolve(name) for name in ("env.a", "env.c", "gone.x")] == ["env.c", "env.c", "gone.x"]


def test_the_shipped_taxonomy_has_the_classes_of_the_audit() -> None:
    found = Taxonomy.parse(SHIPPED.read_text("utf-8"))
    assert {one.class_ for one in found.mode if one.class_} == {*CLASSES}
    assert sum(one.owner == "policy" for one in found.mode) == 10
    assert all(one.title and one.means and one.key for one in found.mode)
    assert OWNERS == TRIAGE_OWNERS


def test_a_reviewer_has_the_name_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert reviewer_name("Ada Lovelace") == "ada-lovelace"
    with pytest.raises(UsageError, match=r"--reviewer takes a name .* got '\.\./'"):
        reviewer_name("../")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "Ben")
    assert reviewer_name(None) == "ben"


def test_labels_of_programs_are_joined_by_episode(studio: Open, folder: Path) -> None:
    rows = [
        {"task": "t0", "member": 1, "owner": "env", "why": "stale", "event": {"turn": 1, "step": 0}},
        {"task": "gone"},
    ]
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "not a label\n")
    (folder / "labels").mkdir()
    (folder / "labels" / "judge.jsonl").write_text('{"task": "t0", "member": 2, "owner": "verifier"}\n')
    client = studio("ada")
    answer = client.get("/api/runs/first/reviews").json()
    assert column(client, "owner")[:4] == [[], ["env"], ["verifier"], []]
    assert answer["warnings"] == ["1 lines of labels.jsonl are not labels"]
    (label,) = client.get("/api/runs/first/labels/1").json()
    assert (label["file"], label["owner"], label["why"], label["event"]["turn"]) == ("labels", "env", "stale", 1)
    assert client.get("/api/runs/first/labels/0").json() == []
    answer = client.post("/api/runs/first/samples", json={"name": "blind", "seed": 0, "size": 3, "by": "owner"})
    assert answer.json()["strata"] == {"env": 1, "none": 16, "verifier": 1}
    assert {one.stratum for one in samples.read(folder, "blind").episodes} == {"env", "none", "verifier"}


def test_columns_of_labels_follow_their_files(studio: Open, folder: Path, tmp_path: Path) -> None:
    client, reader = studio("ada"), Reader()
    run = Runs([folder], tmp_path / "other")["first"]
    reader.apply(run.columns(0, 9)[0])
    assert not any(reader.columns["label"] + reader.columns["owner"])
    known = run.columns(len(TRACES), 9)[0]
    stamp = json.loads(known[4 : 4 + int.from_bytes(known[:4], "little")])["labels"]
    assert run.columns(len(TRACES), 9, stamp)[1] is False
    verdict = said(client, 2, "env", modes=["env.race"])
    said(client, 4)
    (folder / "labels.jsonl").write_text('{"task": "t0", "member": 2, "owner": "task"}\n')
    message, is_news = run.columns(len(TRACES), 9, stamp)
    assert is_news
    reader.apply(message)
    found = {name: [(row, *values) for row, values in enumerate(reader.columns[name]) if values] for name in NAMES}
    assert found == {
        "label": [(2, "env"), (4, "policy")], "mode": [(2, "env.race")], "by": [(2, "ada"), (4, "ada")],
        "owner": [(2, "task")],
    }  # fmt: skip
    other = said(studio("ben"), 2)
    assert column(client, "label")[2] == ["env", "policy"]
    decided = {"kind": "decided", "rows": [2], "owner": "task", "of": [verdict["id"], other["id"]]}
    assert client.post("/api/runs/first/reviews", json=decided).status_code == 200
    assert column(client, "label")[2] == ["task"]
    run.close()


def test_fields_of_labels_are_columns(studio: Open, folder: Path, tmp_path: Path) -> None:
    (folder / "labels").mkdir()
    rows = [
        {"task": "t0", "member": 1, "grade": 0.25, "kind": "late", "sure": True, "mixed": 1, "why": "w", "more": [1]},
        {"task": "t0", "member": 1, "grade": 0.5, "kind": "late", "sure": True, "mixed": 1},
        {"task": "t5", "member": 2, "grade": 1, "kind": "early", "mixed": "one", "huge": 10**400},
        {"task": "t5", "member": 2, "grade": 1, "kind": "early", "mixed": "one"},
    ]
    (folder / "labels" / "judge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "given.jsonl").write_text('{"task": "t0", "member": 0, "pass": false}\n')
    run = Runs([folder], tmp_path / "cache", [tmp_path / "given.jsonl"])["first"]
    reader = Reader()
    with (folder / "traces.jsonl").open("ab") as file:
        for late in (b"", line(trace("t0", 0, score=0.5)), line(trace("t9"))):
            file.write(late)
            file.flush()
            reader.apply(run.columns(reader.rows, 9)[0])
    found = {name: values for name, values in reader.columns.items() if name.startswith("label.")}
    none, rest = float("nan"), len(TRACES)
    assert list(found) == [*(f"label.judge.{name}" for name in ("grade", "kind", "sure", "mixed")), "label.given.pass"]
    assert repr(found["label.judge.grade"]) == repr([none, 0.5, *[none] * (rest - 3), 1.0, none, none])
    assert found["label.judge.kind"] == ["", "late", *[""] * (rest - 3), "early", "", ""]
    assert (found["label.judge.mixed"][1], found["label.judge.mixed"][-3]) == ("1.0", "one")
    assert repr(found["label.given.pass"]) == repr([0.0, *[none] * (rest - 1), 0.0, none])
    table = {(row["task"], row["member"]): row for row in EpisodeTable(run).rows()}
    assert (table["t0", 1]["label.judge.grade"], table["t0", 2]["label.judge.kind"]) == (0.5, None)
    assert run.labels.warnings() == ["1 lines of judge.jsonl are not labels"]
    run.close()
    studio("ada")
    write(folder.parent / "second", TRACES)
    with pytest.raises(UsageError, match="labels are of one run, got 2 runs: first, second"):
        Runs([folder.parent], tmp_path / "cache", [tmp_path / "given.jsonl"])
