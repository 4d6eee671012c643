"""Exports a log to TensorBoard and Weights & Biases files with their libraries, and prints what the files hold."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE, LOG, OUT = map(Path, sys.argv[1:4])
BLOCK, HEADER = 32_768, 7
"""Sizes of the blocks of a LevelDB log, and of the header of the file and of each record."""


def records(data: bytes) -> Iterator[bytes]:
    """Yields the records of a LevelDB log; a long one is in several pieces (type 2, 3, 4)."""
    place, whole = HEADER, b""
    while place + HEADER <= len(data):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (1, 4):
            yield whole
            whole = b""


def wandb_rows() -> list[dict[str, Any]]:
    messages: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    (file,) = OUT.glob("wandb/wandb/offline-run-*/*.wandb")
    found: list[dict[str, Any]] = []
    for one in records(file.read_bytes()):
        record = messages.Record()
        record.ParseFromString(one)
        if record.WhichOneof("record_type") == "history":
            found.append({item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item})
    return found


def tensorboard_points() -> dict[str, list[tuple[int, float]]]:
    module: Any = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    (folder,) = (OUT / "tensorboard").iterdir()
    read = module.EventAccumulator(str(folder))
    read.Reload()
    return {tag: [(event.step, event.value) for event in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


sys.path.insert(0, str(SOURCE))
from quintain.train.report import export, read_updates  # noqa: E402

runs = {"run": read_updates(LOG)}
for make in (export.tensorboard, export.wandb):
    with make(OUT / make.__name__) as exporter:
        exporter.add({"run": runs["run"][:1]})
        exporter.add(runs)
sys.stdout.write("FACTS " + json.dumps({"tensorboard": tensorboard_points(), "wandb": wandb_rows()}) + "\n")
