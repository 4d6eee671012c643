"""Episodes of a run as rows with columns of one type, for CSV and Parquet: facts, rewards, tags, tools and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from .folders import Run
from .reviews import by_episode, current, said_by_people

_FACTS = (
    "n", "task", "member", "attempt", "split", "agent", "seed", "end", "reason", "component", "kind", "score", "turns",
    "steps", "errors", "faults", "moved", "branches", "threads", "prompt", "completion", "tokens", "version",
    "last_version", "logprob", "model_s", "tool_s", "verifier_s", "queue_s", "total_s", "shape", "digest",
)  # fmt: skip
_CAST = {"tokens": "prompt + completion"}
_LABELS = ("label", "mode", "by", "owner")
_QUERY = f"""
SELECT {", ".join(_CAST.get(name, name) for name in _FACTS)}, rewards, tags, tools
FROM episode LEFT JOIN timing USING (task, member, attempt) ORDER BY n
"""  # noqa: S608  # names of our own


class EpisodeTable:
    """All episodes of a run.

    Attributes:
        run: The run.
        columns: Names of the columns in their order: facts, `reward.*`, `tag.*`, `tool.*` with its number of calls, and
            the labels of people (`label`, `mode`, `by`) and programs (`owner`, `label.*`).
        texts: Those of `label.*` that hold texts.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        run.index.update()
        names: dict[str, None] = {}
        for kind, column in (("reward", "rewards"), ("tag", "tags"), ("tool", "tools")):
            query = f"SELECT DISTINCT key FROM episode, json_each(episode.{column}) ORDER BY key"  # noqa: S608
            with run.index.lock:
                names |= {f"{kind}.{name}": None for (name,) in run.index.database.execute(query)}
        self._programs = run.labels.columns()
        self.columns: Sequence[str] = (*_FACTS, *names, *_LABELS, *self._programs)
        self.texts = {n for n, found in self._programs.items() if any(isinstance(one, str) for one in found.values())}

    def search(self, text: str) -> list[int]:
        """Returns the numbers of the episodes that hold a text."""
        return self.run.index.search(text)[0]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields a row for each episode, with a value or None for each column."""
        labels, owners = by_episode(current(self.run.reviews.all()[0])), self.run.labels.owners()
        with self.run.index.lock:
            found = self.run.index.database.execute(_QUERY).fetchall()
        for *facts, rewards, tags, tools in found:
            row: dict[str, Any] = dict.fromkeys(self.columns)
            row |= zip(_FACTS, facts, strict=True)
            row |= {f"reward.{name}": value[1] for name, value in msgspec.json.decode(rewards).items()}
            row |= {f"tag.{name}": value for name, value in msgspec.json.decode(tags).items()}
            row |= {f"tool.{name}": value[0] for name, value in msgspec.json.decode(tools).items()}
            key = (row["task"], row["member"], row["attempt"])
            said = said_by_people(labels.get(key, ()), row["digest"])
            row |= {name: ", ".join(words) or None for name, words in said.items()} | {"owner": owners.get(key)}
            row |= {name: values.get(key) for name, values in self._programs.items()}
            yield row
