"""Questions whose answer needs several pages: HotpotQA and MuSiQue with a corpus of their own, searched by BM25.

The files come from a folder of the user's: `hotpotqa_train.json` with `hotpotqa_train_corpus.json` (Yang et al., EMNLP
2018), or `musique_...` in the same form (Trivedi et al., TACL 2022), gzipped or not. Needs the extra `search`.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from quintain.config import Config
from quintain.environment import Environment
from quintain.errors import ToolError, UsageError
from quintain.harness import ToolLoop
from quintain.harnesses.corpus import Corpus, Page
from quintain.judges.answers import overlap, squad_text
from quintain.table import Table
from quintain.task import Task
from quintain.tools import tool
from quintain.verifier import EpisodeView, Score, Verifier, reward

SETS = ("hotpotqa", "musique")
TRAIN = 70
"""Tasks in 100 of the split "train"; the others are in "test"."""
SYSTEM = """Answer the question from the pages of a small web. Search, read, and call `submit` once.
Give a short answer, and each passage that it rests on: the page's address and the number in front of the passage."""


class Passage(msgspec.Struct, frozen=True):
    """Passage that an answer rests on.

    Attributes:
        url: Address of the page.
        passage: Number in front of the passage.
    """

    url: str
    passage: Annotated[int, msgspec.Meta(ge=0)]


class Research(Corpus):
    """Pages, and what was submitted."""

    answer: str | None = None
    facts: list[Passage] = []

    @tool(writes=("answer", "facts"))
    def submit(
        self,
        answer: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)],
        facts: Annotated[list[Passage], msgspec.Meta(max_length=50)],
    ) -> str:
        """Submit the answer, which ends the work.

        Args:
            answer: The answer, in a few words.
            facts: Passages that it rests on.
        """
        if unknown := [one.url for one in facts if one.url not in self.pages]:
            raise ToolError(f"no page has the address {unknown[0]!r}")
        self.answer, self.facts = answer, facts
        self.finish("submitted")
        return "submitted"


class RightAnswer(msgspec.Struct, frozen=True):
    """Right answers, each as good as the others, and the passages they rest on."""

    answers: tuple[str, ...]
    facts: tuple[Passage, ...]


class AnswerScores(msgspec.Struct, frozen=True):
    """AnswerScores of an answer and of its facts, each from 0 to 1, by the rules of `hotpot_evaluate_v1.py`."""

    em: float
    f1: float
    precision: float
    recall: float
    facts_em: float
    facts_f1: float
    joint_f1: float


def scores(
    answer: str, facts: Collection[tuple[Any, ...]], *, answers: Collection[str], truth: Collection[tuple[Any, ...]]
) -> AnswerScores:
    """Returns the scores of an answer and its facts against the best of several right answers.

    Joint F1 is that of precision(answer) * precision(facts) and recall(answer) * recall(facts).
    """
    said = squad_text(answer)
    f1, precision, recall = max(overlap(said, squad_text(one)) for one in answers)
    own, right = set(facts), set(truth)
    common = len(own & right)
    fact_precision, fact_recall = common / len(own) if own else 0.0, common / len(right) if right else 0.0
    return AnswerScores(
        em=float(said in {squad_text(one) for one in answers}),
        f1=f1,
        precision=precision,
        recall=recall,
        facts_em=float(own == right),
        facts_f1=_f1(fact_precision, fact_recall),
        joint_f1=_f1(precision * fact_precision, recall * fact_recall),
    )


def load(name: str, *, data: str | Path, score: Literal["f1", "em", "joint_f1"] = "f1") -> Environment[Research]:
    """Returns a set of questions as an environment. Its files are read with the first task.

    Args:
        name: "hotpotqa" or "musique".
        data: Folder with the files.
        score: Quantity that is the score; the others are recorded beside it.

    Raises:
        UsageError: The name or the score is unknown, or a file is missing or has another form.
    """
    names = AnswerScores.__struct_fields__
    if name not in SETS or score not in names:
        raise UsageError(f"multihop has {', '.join(SETS)} with score {', '.join(names)}; got {name!r}, {score!r}")
    folder = Path(data)
    for part in ("", "_corpus"):
        _file(folder, f"{name}_train{part}.json")
    tasks = functools.cache(functools.partial(_tasks, folder, name))

    def criterion(quantity: str) -> Any:
        def judge(view: EpisodeView[Research]) -> Score:
            state, truth = view.state, view.task.truth
            if state.answer is None:
                return Score(0.0, "nothing was submitted")
            found = scores(
                state.answer,
                [(one.url, one.passage) for one in state.facts],
                answers=truth.answers,
                truth=[(one.url, one.passage) for one in truth.facts],
            )
            return Score(getattr(found, quantity), f"{state.answer!r}; expected {' or '.join(truth.answers)!r}")

        judge.__name__ = quantity
        return reward(weight=float(quantity == score))(judge)

    return Environment(
        f"multihop_{name}",
        tasks=lambda split: tasks()[split],
        harness=ToolLoop(system=SYSTEM),
        verifier=Verifier(*map(criterion, names)),
        state=Research,
        splits=("train", "test"),
        config=Config(max_turns=20),
    )


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise UsageError(f"no file {name} or {name}.gz in {str(folder)!r}; give the folder as data=")


def _read(folder: Path, name: str) -> Any:
    path = _file(folder, name)
    raw = path.read_bytes()
    try:
        return msgspec.json.decode(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}") from error


def _tasks(folder: Path, name: str) -> dict[str, list[Task[Research]]]:
    rows, corpus = _read(folder, f"{name}_train.json"), _read(folder, f"{name}_train_corpus.json")
    try:
        passages = _hotpot_pages(corpus) if name == "hotpotqa" else _musique_pages(corpus)
        pages = {url: Page(title, _numbered(texts)) for url, title, texts in passages}
        places = {(title, text): url for url, title, texts in passages for text in texts[:1]}
        start = Research(pages=Table(Page, pages))
        read = _hotpot_task if name == "hotpotqa" else _musique_task
        found: dict[str, list[Task[Research]]] = {"train": [], "test": []}
        for row in rows:
            task = read(row, start, places)
            share = int.from_bytes(hashlib.blake2b(task.id.encode(), digest_size=8).digest(), "little") % 100
            found["train" if share < TRAIN else "test"].append(task)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"the files of {name} in {str(folder)!r} have another form: {error!r}") from error
    return found


_Passages = list[tuple[str, str, list[str]]]
"""(address, title, passages) of each page."""
_Places = dict[tuple[str, str], str]
"""Addresses by title and first passage."""


def _hotpot_pages(corpus: dict[str, list[str]]) -> _Passages:
    return [(f"p{n}", title, texts) for n, (title, texts) in enumerate(corpus.items(), 1)]


def _musique_pages(corpus: list[dict[str, str]]) -> _Passages:
    return [(f"p{n}", one["title"], [one["text"]]) for n, one in enumerate(corpus, 1)]


def _numbered(texts: list[str]) -> str:
    return "\n".join(f"[{n}] {text.strip()}" for n, text in enumerate(texts))


def _hotpot_task(row: dict[str, Any], start: Research, places: _Places) -> Task[Research]:
    urls = {title: url for (title, _), url in places.items()}
    facts = tuple(Passage(urls[title], n) for title, n in row["supporting_facts"])
    return _task(row["_id"], row, start, facts=facts, tags={"kind": row["type"], "level": row["level"]})


def _musique_task(row: dict[str, Any], start: Research, places: _Places) -> Task[Research]:
    right = [one for one in row["paragraphs"] if one["is_supporting"]]
    facts = tuple(Passage(places[one["title"], one["paragraph_text"]], 0) for one in right)
    return _task(row["id"], row, start, facts=facts, tags={"hops": str(len(row["question_decomposition"]))})


def _task(
    name: str, row: dict[str, Any], start: Research, *, facts: tuple[Passage, ...], tags: dict[str, str]
) -> Task[Research]:
    answers = (row["answer"], *row.get("answer_aliases", ()))
    fetches = tuple(("web_fetch", {"url": url}) for url in dict.fromkeys(one.url for one in facts))
    submitted = {"answer": row["answer"], "facts": [msgspec.to_builtins(one) for one in facts]}
    return Task(
        id=name,
        prompt=row["question"],
        start=start,
        truth=RightAnswer(answers, facts),
        tags=tags,
        solution=(("web_search", {"query": row["question"]}), *fetches, ("submit", submitted)),
    )
