"""Parquet files of chat rows, for tables and data sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quintain import codec
from quintain.plugins import package

from .training_rows import Row

_BATCH = 256
"""Rows in memory at a time."""


def write_parquet(path: Path, rows: Iterable[Row]) -> None:
    """Writes chat rows as a table; `tags`, `tools` and a content with pictures are JSON texts.

    Raises:
        UsageError: pyarrow is not installed.
        OSError: The file cannot be written.
    """
    pa = package("pyarrow", extra="parquet")
    schema = _schema(pa)
    rest = map(_flat, rows)
    with package("pyarrow.parquet", extra="parquet").ParquetWriter(path, schema) as file:
        while batch := list(itertools.islice(rest, _BATCH)):
            file.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))


def _flat(row: Row) -> Row:
    texts = {name: codec.json(row[name]).decode() for name in ("tags", "tools") if name in row}
    messages = [message | {"content": codec.text(message["content"])} for message in row["messages"]]
    return row | texts | {"messages": messages}


def _schema(pa: Any) -> Any:
    text, number, index = pa.string(), pa.float64(), pa.int64()
    call = {"id": text, "type": text, "function": pa.struct({"name": text, "arguments": text})}
    message = {"role": text, "content": text, "reasoning_content": text, "tool_call_id": text}
    message |= {"tool_calls": pa.list_(pa.struct(call))}
    reward = {"name": text, "level": text, "value": number, "weight": number, "reason": text}
    reward |= {"message": index, "step": index}
    facts = dict.fromkeys(("environment", "split", "task", "agent", "reason", "tags", "tools"), text)
    facts |= {"member": index, "attempt": index, "score": number}
    return pa.schema(facts | {"messages": pa.list_(pa.struct(message)), "rewards": pa.list_(pa.struct(reward))})
