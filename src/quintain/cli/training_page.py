"""Page of a training report: one HTML file with inline SVG, without script and requests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources

from quintain.audit.report.page.markup import Html, tag
from quintain.audit.report.page.pictures import histogram
from quintain.train.report.curves import Curve, Rate, TrainingReport

from .console import number, plural

_WIDE, _LEFT, _TOP, _BOTTOM = 640, 56, 20, 150
_SERIES = ("one", "two", "three", "four", "one dash", "two dash", "three dash", "four dash")
_STYLE = """
.band { fill: var(--series); opacity: .14; }
.seed { fill: none; stroke: var(--series); opacity: .4; }
.dash { stroke-dasharray: 5 3; }
.rule { stroke: var(--rule); }
"""
_TENTHS = [f"{tenth / 10:.1f}" for tenth in range(11)]


def page(report: TrainingReport, *, refresh_s: int | None = None) -> str:
    """Returns the HTML page of a report; with `refresh_s` the browser loads it again after so many seconds."""
    live = "" if refresh_s is None else f"Live: loaded again every {refresh_s} s. "
    header = tag(
        "header",
        tag("p", live, ", ".join(report.runs), class_="kicker"),
        tag("h1", "Training report"),
        *(tag("p", tag("span", "warning", class_="badge warning"), " ", words) for words in report.warnings),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts(report)), class_="facts"),
    )
    drawn = {heading: list(inside) for heading, inside in _sections(report).items()}
    main = [tag("section", tag("h2", heading), *inside) for heading, inside in drawn.items() if inside]
    return f"<!doctype html>\n{tag('html', _head(refresh_s), tag('body', header, tag('main', *main)), lang='en')}\n"


def facts(report: TrainingReport) -> Iterator[tuple[str, str]]:
    """Yields name and value of the most important facts."""
    updates = sum(int(run["updates"]) for run in report.runs.values())
    yield "runs", f"{len(report.runs):,} with {plural(updates, 'update')}"
    if (change := report.improvement) is not None:
        yield "score, first and last tenth", f"{number(change.first)} to {number(change.last)}"
        if change.interval is not None:
            yield "change, 95 % over the runs", f"{change.interval[0]:+.3f} to {change.interval[1]:+.3f}"
    yield "invalid episodes", _rate(report.invalid)
    if report.bounds is not None:
        low, high = map(number, report.bounds)
        yield "mean score", f"{number(report.mean)}; {low} to {high} with invalid ones as the lowest and highest"


def _head(refresh_s: int | None) -> Html:
    style = (resources.files("quintain.audit.report.page") / "style.css").read_text("utf-8") + _STYLE
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; img-src data:; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", http_equiv="refresh", content=refresh_s) if refresh_s is not None else None,
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", "Training report"),
        tag("style", Html(style)),
    )


def _sections(report: TrainingReport) -> dict[str, Iterable[Html]]:
    """Returns pictures and tables by heading; a heading without any is left out of the page."""

    def chart(title: str, prefix: str) -> Iterator[Html]:
        return _chart(title, report.family(prefix))

    def each(prefix: str) -> list[Html]:
        return [one for name, curve in report.family(prefix).items() for one in _chart(name, {"mean": curve})]

    rewards = [one for level in report.counts.rewards for one in chart(f"Mean reward, {level}", f"reward/{level}/")]
    return {
        "Score": [
            *chart("Mean score of valid episodes, with its interval over the runs", "score/mean"),
            *chart("Mean score with invalid episodes as the lowest and as the highest score", "bounds/"),
            *chart("Mean score of trained groups", "score/trained"),
            *chart("Share of solved episodes", "score/solved"),
        ],
        "Invalid episodes": [*chart("Share of episodes, by component", "invalid/"), *_invalid(report)],
        "Selection": [*chart("Share of groups", "groups/"), *_selection(report)],
        "Staleness": [*chart("Lag of trained tokens, in policy versions", "lag/"), *_staleness(report)],
        "Tasks": [*chart("Mean score by level", "level/"), *_tasks(report), *each("sampler/")],
        "Rewards": rewards,
        "Trainer": each("metrics/"),
        "Work": [*each("episode/"), *each("seconds/")],
    }


def _invalid(report: TrainingReport) -> Iterator[Html]:
    failures = report.counts.failures.items()
    rows = [(part, kind, f"{count:,}") for part, kinds in sorted(failures) for kind, count in sorted(kinds.items())]
    if rows:
        halves = {"shorter half": report.invalid_short, "longer half": report.invalid_long}
        yield _table(("component", "kind", "episodes"), rows)
        yield _table(("by turns", "invalid"), [(name, _rate(rate)) for name, rate in halves.items()])


def _selection(report: TrainingReport) -> Iterator[Html]:
    rows = [
        (name, f"{one.groups:,}", number(one.mean), *_per(one.episodes, one.turns, one.tokens))
        for name, one in report.counts.parts.items()
    ]
    if rows:
        yield _table(("use", "groups", "mean score", "turns per episode", "tokens per episode"), rows)


def _staleness(report: TrainingReport) -> Iterator[Html]:
    if lags := dict(sorted(report.counts.lags.items())):
        yield histogram("Trained tokens by lag", list(map(str, lags)), {"tokens": list(lags.values())})
    if report.counts.unversioned:
        yield tag("p", f"{report.counts.unversioned:,} trained tokens have no version.")


def _tasks(report: TrainingReport) -> Iterator[Html]:
    levels = sorted(report.counts.levels.items())
    rows = [(name, f"{one.groups:,}", number(one.mean), *_per(one.scored, one.solved)) for name, one in levels]
    if rows:
        yield _table(("level", "groups", "mean score", "solved"), rows)
    if success := report.counts.success:
        counts = [success.get(tenth, 0) for tenth in range(11)]
        yield histogram("Trained groups by share of solved episodes", _TENTHS, {"groups": counts})
    if report.weights:
        yield histogram("Tasks by the sampler's weight", _TENTHS[:10], {"tasks": report.weights})


def _chart(title: str, curves: Mapping[str, Curve]) -> Iterator[Html]:
    """Yields a picture of curves with their intervals, and a thin line per run of a curve that is alone."""
    shown = list(zip(_SERIES, curves.items(), strict=False))
    thin = next(iter(curves.values())).runs if len(curves) == 1 else []
    lines: list[Sequence[float | None]] = [*(curve.mean for curve in curves.values()), *thin]
    values = [value for line in lines for value in line if value is not None]
    if not any(values):
        return
    margin = (max(values) - min(values)) / 10 or 0.5
    low, high = min(values) - margin, max(values) + margin
    first, last = min(curve.steps[0] for curve in curves.values()), max(curve.steps[-1] for curve in curves.values())

    def path(steps: Sequence[int], line: Sequence[float | None]) -> str:
        """Returns the points of a line, which a missing value breaks."""
        pen, drawn = "M", list[str]()
        for step, value in zip(steps, line, strict=True):
            if value is not None:
                x = _LEFT + (_WIDE - _LEFT - 10) * (step - first) / max(1, last - first)
                share = (min(max(value, low), high) - low) / (high - low)  # An interval may be wider than the picture.
                drawn.append(f"{pen}{x:.1f} {_height(share)}")
            pen = "M" if value is None else "L"
        return " ".join(drawn)

    inside = [tag("path", class_="seed one", d=path(shown[0][1][1].steps, run)) for run in thin]
    for style, (_, curve) in shown:
        there = [place for place, value in enumerate(curve.low) if value is not None]
        steps = [curve.steps[place] for place in (*there, *reversed(there))]
        outline = [*(curve.low[place] for place in there), *(curve.high[place] for place in reversed(there))]
        inside += [tag("path", class_=f"band {style}", d=f"{path(steps, outline)} Z")] if there else []
        inside.append(tag("path", class_=f"curve {style}", d=path(curve.steps, curve.mean)))
    ends = [f"{name} {curve.mean[0]:.3g} → {curve.mean[-1]:.3g}" for _, (name, curve) in shown]
    keys = [tag("span", words, class_=f"key {style}") for words, (style, _) in zip(ends, shown, strict=True)]
    more = f" ({len(curves) - len(shown)} more in --json)" if len(curves) > len(shown) else ""
    picture = tag(
        "svg",
        *(part for share in (0, 0.5, 1) for part in _tick(low + (high - low) * share, _height(share))),
        *inside,
        tag("text", first, x=_LEFT, y=168),
        tag("text", f"step {last}", x=_WIDE - 10, y=168, class_="end"),
        viewBox=f"0 0 {_WIDE} 178",
        role="img",
        aria_label=f"{title}, steps {first} to {last}: {'; '.join(ends)}",
    )
    yield tag("figure", tag("figcaption", title, more, tag("span", *keys, class_="legend")), picture)


def _height(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)


def _tick(value: float, y: float) -> tuple[Html, Html]:
    line = tag("line", class_="rule", x1=_LEFT, x2=_WIDE - 10, y1=y, y2=y)
    return line, tag("text", f"{value:.3g}", x=_LEFT - 6, y=y + 4, class_="end")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    titles = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", titles, body), class_="scroll", tabindex=0)


def _per(count: int, *totals: float) -> list[str]:
    return [number(total / count if count else None) for total in totals]


def _rate(rate: Rate) -> str:
    share = "-" if rate.rate is None else f"{rate.rate:.1%} (95 %: {rate.low:.1%} to {rate.high:.1%})"
    return f"{rate.failed:,} of {rate.episodes:,}, {share}"
