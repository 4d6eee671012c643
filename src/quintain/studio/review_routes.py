"""Routes of the review screens: reviews, samples and the taxonomy. What a sample hides is hidden here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quintain.errors import UsageError
from quintain.record import Key

from . import samples
from .agreement import of_run
from .cut import cut, text_address
from .folders import Run, Runs
from .profile import profile_of_runs
from .reviews import Kind, Mark, Owner, Place, Review, Target, current
from .taxonomy import RESERVED, Taxonomy, TaxonomyFile

_STRATA = {
    "": "''",
    "score": "CASE WHEN score IS NULL THEN 'none' WHEN score <= 0 THEN '0' WHEN score < 1 THEN 'between' ELSE '1' END",
    "end": "end",
    "shape": "shape",
    "owner": "'none'",
}


class _Given(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of a new review: the page names rows of the table, and the server adds the rest."""

    kind: Kind
    rows: tuple[int, ...] = ()
    owner: Owner | None = None
    modes: tuple[str, ...] = ()
    first: Place | None = None
    mark: Mark | None = None
    sure: Literal["sure", "likely", "unsure"] | None = None
    note: str = ""
    sample: str = ""
    seconds: float | None = None
    of: tuple[str, ...] = ()


class ReviewRoutes:
    """Answers of the routes.

    Args:
        runs: The runs.
        reviewer: Name of the person who reviews here, where requests carry no keys.
    """

    def __init__(self, runs: Runs, reviewer: str) -> None:
        self._runs, self._reviewer = runs, reviewer
        self._taxonomy = TaxonomyFile(runs.home)

    def routes(self) -> list[Route]:
        return [
            Route("/api/taxonomy", self._answer(self.taxonomy)),
            Route("/api/taxonomy", self._answer(self.put_taxonomy), methods=["PUT"]),
            Route("/api/runs/{run}/reviews", self._answer(self.reviews)),
            Route("/api/runs/{run}/reviews", self._answer(self.post_review), methods=["POST"]),
            Route("/api/runs/{run}/agreement", self._answer(self.agreement)),
            Route("/api/runs/{run}/profile", self._answer(self.profile)),
            Route("/api/runs/{run}/labels/{n:int}", self._answer(self.labels)),
            Route("/api/runs/{run}/samples", self._answer(self.post_sample), methods=["POST"]),
            Route("/api/runs/{run}/samples/{sample}", self._answer(self.sample)),
            Route("/api/runs/{run}/samples/{sample}/{n:int}", self._answer(self.episode)),
        ]

    @staticmethod
    def _answer(method: Any) -> Any:
        """Returns the endpoint that runs a method in a thread and sends its value as JSON."""

        async def endpoint(request: Request) -> Response:
            body = await request.body()
            value = await run_in_threadpool(method, request, body)
            content = value if isinstance(value, bytes) else msgspec.json.encode(value)
            return Response(content, media_type="application/json")

        return endpoint

    def taxonomy(self, _request: Request, _body: bytes) -> Any:
        return taxonomy_of(self._taxonomy)

    def put_taxonomy(self, request: Request, body: bytes) -> Any:
        self._taxonomy.write(body.decode("utf-8", "replace"), request.headers.get("if-match", "").strip('"'))
        return self.taxonomy(request, body)

    def reviews(self, request: Request, _body: bytes) -> Any:
        return reviews_of(self._run(request), self._name(request), request.query_params.get("sample", ""))

    def labels(self, request: Request, _body: bytes) -> Any:
        """Returns what programs say of an episode."""
        return said_of(self._run(request), request.path_params["n"])["labels"]

    def post_review(self, request: Request, body: bytes) -> Any:
        """Adds a review, or several where one is inherited.

        Raises:
            UsageError: The body is not a review, or it names what is not there.
        """
        run, reviewer = self._run(request), self._name(request)
        try:
            given = msgspec.json.decode(body, type=_Given)
        except msgspec.DecodeError as error:
            raise UsageError(f"this is not a review: {error}") from error
        lines = list(self._lines(run, given, reviewer))
        added = run.reviews.add(reviewer, lines) if lines else []
        rows = run.rows({one.target.task for one in added})
        return [_placed(one, rows) for one in added]

    def _lines(self, run: Run, given: _Given, reviewer: str) -> Iterable[dict[str, Any]]:
        said, _ = run.reviews.all()
        fields = {name: value for name, value in msgspec.structs.asdict(given).items() if name != "rows"}
        if given.kind in {"removed", "inherited"}:
            own = {one.id: one for one in said if one.reviewer == reviewer}
            sources = [own[name] for name in dict.fromkeys(given.of) if name in own]
            if not sources or len(sources) != len(given.of) or (given.kind == "inherited" and len(sources) > 1):
                number = "one review" if given.kind == "inherited" else "reviews"
                raise UsageError(f"{given.kind} names {number} of {reviewer}, got {given.of[:3]}")
            if given.kind == "removed":
                return [{"kind": "removed", "of": (one.id,), "target": one.target} for one in sources]
            fields |= {"owner": sources[0].owner, "modes": sources[0].modes}
        else:
            self._check(given)
        taxonomy = self._taxonomy.taxonomy()
        fields |= {"taxonomy": taxonomy.revision}
        if given.sample:
            fields |= {"blind": samples.read(run.folder, given.sample).blind}
        mine = {one.target.key for one in current(said) if one.reviewer == reviewer and one.mark is None}
        targets = _targets(run, given.rows)
        return [fields | {"target": one} for one in targets if given.kind != "inherited" or one.key not in mine]

    def _check(self, given: _Given) -> None:
        """Refuses a review that says nothing, and modes that the taxonomy lacks.

        Raises:
            UsageError: The review cannot be used.
        """
        if len(given.rows) != 1 or (given.kind in {"note", "mark"}) != (given.owner is None):
            raise UsageError("a verdict names one row and an owner, a note or a mark one row and no owner")
        if (given.kind == "mark") != (given.mark is not None):
            raise UsageError("a mark, and nothing else, has the place of a text")
        if given.kind == "decided" and len(given.of) < 2:
            raise UsageError("a decision names the verdicts that it decides between")
        if given.kind == "note" and not given.note.strip():
            raise UsageError("a note has a text")
        known = {mode.id for mode in self._taxonomy.taxonomy().mode if not mode.merged and mode.owner == given.owner}
        if unknown := [mode for mode in given.modes if mode not in known]:
            raise UsageError(
                f"the taxonomy has no mode {unknown[0]!r} of {given.owner}; it has {', '.join(sorted(known))}"
            )

    def profile(self, request: Request, _body: bytes) -> Any:
        return profile_of_runs([self._run(request)])

    def agreement(self, request: Request, _body: bytes) -> Any:
        of = [name for name in request.query_params.get("of", "").split(",") if name]
        return of_run(self._run(request), self._taxonomy.taxonomy(), of=of)

    def post_sample(self, request: Request, body: bytes) -> Any:
        """Draws a sample.

        Raises:
            UsageError: The body is not a sample, or its column is unknown.
        """
        run = self._run(request)
        try:
            asked = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"this is not a sample: {error}") from error
        by = asked.get("by", "")
        if by not in _STRATA:
            raise UsageError(f"by is one of {', '.join(filter(None, _STRATA))} or empty, got {by!r}")
        run.index.update()
        query = f"SELECT task, member, attempt, digest, {_STRATA[by]} FROM episode"  # noqa: S608  # a table of our own
        with run.index.lock:
            found = run.index.database.execute(query).fetchall()
        owners = run.labels.owners() if by == "owner" else {}
        rows = [(_target(*row[:4]), owners.get((row[0], row[1], row[2])) or str(row[4])) for row in found]
        sample = samples.draw(asked, rows)
        samples.write(run.folder, sample)
        return {"name": sample.name, "episodes": len(sample.episodes), "strata": sample.strata}

    def sample(self, request: Request, _body: bytes) -> Any:
        """Returns a sample in this reviewer's order, each episode with its row; None if it is gone or changed."""
        run = self._run(request)
        sample = samples.read(run.folder, request.path_params["sample"])
        order = sample.order(self._name(request))
        run.index.update()
        rows = run.rows({one.task for one in order})
        found = [
            {
                "n": rows.get(one.key, (None, ""))[0] if rows.get(one.key, (0, ""))[1] == one.digest else None,
                "key": one.key,
            }
            for one in order
        ]
        return {"name": sample.name, "seed": sample.seed, "blind": sample.blind, "episodes": found}

    def episode(self, request: Request, _body: bytes) -> bytes:
        """Returns the line of an episode without what the sample hides, and without its longest texts."""
        run = self._run(request)
        sample = samples.read(run.folder, request.path_params["sample"])
        n = request.path_params["n"]
        line = run.index.line(n)
        return cut(samples.without_rewards(line) if "reward" in sample.blind else line, text_address(run.name, n))

    def _name(self, request: Request) -> str:
        """Returns the reviewer: the owner of the request's key, where the studio asks for keys."""
        name: str = request.scope.get("reviewer", self._reviewer)
        return name

    def _run(self, request: Request) -> Run:
        return self._runs[request.path_params["run"]]


def taxonomy_of(file: TaxonomyFile) -> dict[str, Any]:
    """Returns the taxonomy, its text and the tag that a writer must name."""
    text, tag = file.read()
    found = Taxonomy.parse(text)
    return {"text": text, "tag": tag, "revision": found.revision, "modes": found.mode, "reserved": RESERVED}


def reviews_of(run: Run, reviewer: str = "", sample: str = "") -> dict[str, Any]:
    """Returns the reviews that count, without what a sample hides."""
    lines, warnings = run.reviews.all()
    counting = current(lines)
    hidden = samples.read(run.folder, sample).blind if sample else ()
    if "reviewers" in hidden:
        counting = [one for one in counting if one.reviewer == reviewer]
    rows = run.rows({one.target.task for one in counting})
    facts: dict[str, Any] = {"reviewer": reviewer, "samples": samples.names(run.folder)}
    facts["warnings"] = warnings + run.labels.warnings()
    return facts | {"reviews": [_placed(one, rows) for one in counting]}


def said_of(run: Run, n: int) -> dict[str, Any]:
    """Returns the reviews and the labels of programs of one episode."""
    (target,) = _targets(run, [n])
    rows = {target.key: (n, target.digest)}
    reviews = [_placed(one, rows) for one in current(run.reviews.all()[0]) if one.target.key == target.key]
    return {"reviews": reviews, "labels": run.labels.of(target.key)}


def _target(task: str, member: int, *rest: Any) -> Target:
    return Target(task=task, member=member, attempt=rest[0], digest=rest[1])


def _targets(run: Run, numbers: Sequence[int]) -> list[Target]:
    """Returns the episodes of some rows.

    Raises:
        UsageError: A row is not there.
    """
    query = "SELECT task, member, attempt, digest FROM episode WHERE n IN (SELECT value FROM json_each(?)) ORDER BY n"
    with run.index.lock:
        found = run.index.database.execute(query, (msgspec.json.encode(numbers).decode(),)).fetchall()
    if len(found) != len(set(numbers)):
        raise UsageError(f"{run.name} has not all of these episodes: {', '.join(map(str, numbers[:10]))}")
    return [_target(*row) for row in found]


def _placed(review: Review, rows: dict[Key, tuple[int, str]]) -> dict[str, Any]:
    """Returns a review with the row of its episode, and whether that is another episode than was reviewed."""
    n, digest = rows.get(review.target.key, (None, ""))
    said: dict[str, Any] = msgspec.to_builtins(review)
    return said | {"n": n, "stale": n is None or digest != review.target.digest}
