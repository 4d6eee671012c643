"""Fields are measured and reported. Numbers are compared with a tolerance, and the highest reward is 0.9, as stated."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Field = Literal["hill", "lake", "mill", "road"]
Size = Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]
# Field: length and width in metres.
FIELDS: dict[str, tuple[float, float]] = {
    "hill": (120.5, 80.25),
    "lake": (64.75, 41.5),
    "mill": (210.0, 33.3),
    "road": (18.25, 305.5),
}
AREA, FENCE = 0.6, 0.3
BEST = 0.9
TOLERANCE = 0.01


class Report(msgspec.Struct):
    area: float
    fence: float
    comment: str = ""


class Survey(qn.State):
    reports: dict[str, Report] = {}

    @qn.tool
    def measure(self, field: Field) -> dict[str, float]:
        """Measure a field, a rectangle; returns length and width in metres.

        Args:
            field: The field.
        """
        length, width = FIELDS[field]
        return {"length": length, "width": width}

    @qn.tool
    def report(self, field: Field, area: Size, fence: Size, comment: str = "") -> dict[str, Report]:
        """Report a field; replaces the report that it had. Returns all reports.

        Args:
            field: The field.
            area: Its area in square metres, above 0, at most 1000000.
            fence: The length of a fence around it in metres, above 0, at most 1000000.
            comment: Any text; it is kept and not judged.
        """
        self.reports[field] = Report(area, fence, comment)
        return self.reports


JOBS: list[list[str]] = [["hill"], ["lake"], ["mill"], ["road"], ["hill", "lake"], ["mill", "road", "hill"]]


def tasks(split: str) -> list[qn.Task[Survey]]:
    made: list[qn.Task[Survey]] = []
    for n, fields in enumerate(JOBS, 1):
        prompt = (
            f"Report the area and the fence of each of these fields: {', '.join(fields)}. You earn {AREA} if all areas "
            f"are right and {FENCE} if all fences are right; {BEST} is the highest reward. A number is right if it "
            "differs by at most 1 % from the exact one. Comments and reports of other fields do not matter."
        )
        truth = {name: (FIELDS[name][0] * FIELDS[name][1], 2 * sum(FIELDS[name])) for name in fields}
        calls = tuple(
            ("report", {"field": name, "area": area, "fence": fence}) for name, (area, fence) in truth.items()
        )
        made.append(qn.Task(id=f"{split}-{n}", prompt=prompt, start=Survey(), truth=truth, solution=calls))
    return made


def near(found: float, exact: float) -> bool:
    return abs(found - exact) <= TOLERANCE * exact


@qn.reward(low=0, high=BEST)
def reported(view: qn.EpisodeView[Survey]) -> qn.Score:
    pairs = [(view.state.reports.get(name), exact) for name, exact in view.task.truth.items()]
    areas = all(one is not None and near(one.area, exact[0]) for one, exact in pairs)
    fences = all(one is not None and near(one.fence, exact[1]) for one, exact in pairs)
    return qn.Score(round(AREA * areas + FENCE * fences, 1), f"areas {areas}, fences {fences}")


env = qn.Environment(
    "survey", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(reported), state=Survey, splits=("test",)
)
