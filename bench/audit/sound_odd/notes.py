"""A key-value store in which some keys are called answer, solution or gold, and the prompt holds the digits."""

from typing import Annotated

import msgspec

import quintain as qn

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
Value = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
START = {"colour": "teal", "gold": "79", "silver": "47", "answer_count": "3"}


class Notes(qn.State):
    kept: dict[str, str]

    @qn.tool
    def keys(self) -> list[str]:
        """List all keys, sorted."""
        return sorted(self.kept)

    @qn.tool
    def get(self, key: Key) -> str:
        """Read the value of a key.

        Args:
            key: 1 to 20 characters.
        """
        if key not in self.kept:
            raise qn.ToolError(f"unknown key {key!r}")
        return self.kept[key]

    @qn.tool
    def put(self, key: Key, value: Value) -> str:
        """Keep a value under a key; it replaces what stood there.

        Args:
            key: 1 to 20 characters.
            value: 1 to 40 characters.
        """
        self.kept[key] = value
        return f"{key} = {value}"

    @qn.tool
    def delete(self, key: Key) -> str:
        """Delete a key and its value.

        Args:
            key: 1 to 20 characters.
        """
        value = self.get(key)
        del self.kept[key]
        return f"deleted: {key} = {value}"


Change = dict[str, str | None]
# Each: what is asked for, and what changes; None for a deleted key.
JOBS: list[tuple[str, Change]] = [
    ("Keep 4711 under the key answer.", {"answer": "4711"}),
    ("Keep the sum of 58 and 84 under the key _answer, and the text done under the key solution.",
     {"_answer": "142", "solution": "done"}),
    ("Gold is element 79 and silver 47. For a joke, let gold be 47 and silver be 79.", {"gold": "47", "silver": "79"}),
    ("Delete the key gold, and keep its value under au instead.", {"gold": None, "au": "79"}),
    ("Keep the digits 2 0 2 6 in this order, without spaces, under the key truth.", {"truth": "2026"}),
    ("Keep under the key answer the value that is under the key colour, and under expected the text teal.",
     {"answer": "teal", "expected": "teal"}),
    ("Delete all four keys.", dict.fromkeys(START, None)),
    ("Raise answer_count by one.", {"answer_count": "4"}),
]  # fmt: skip


def steps(changes: Change) -> list[tuple[str, dict[str, object]]]:
    return [
        ("delete", {"key": key}) if value is None else ("put", {"key": key, "value": value})
        for key, value in changes.items()
    ]


def tasks(split: str) -> list[qn.Task[Notes]]:
    made: list[qn.Task[Notes]] = []
    for n, (prompt, changes) in enumerate(JOBS, 1):
        truth = {key: value for key, value in (START | changes).items() if value is not None}
        text = f"{prompt} Values are texts and compared to the letter. Leave all other keys as they are."
        start = Notes(kept=dict(START))
        made.append(qn.Task(id=f"{split}-{n}", prompt=text, start=start, truth=truth, solution=tuple(steps(changes))))
    return made


@qn.reward
def kept_exactly(view: qn.EpisodeView[Notes]) -> qn.Score:
    return qn.Score(float(view.state.kept == view.task.truth), f"kept {view.state.kept}")


env = qn.Environment(
    "notes", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(kept_exactly), state=Notes, splits=("test",)
)
