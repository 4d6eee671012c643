"""Files of TensorBoard and Weights & Biases hold the numbers of the log, each update once."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from quintain.errors import UsageError
from quintain.train.report import TrainingLog, Update, export, read_updates, scalars
from tests.serve.clients.venvs import Venv
from tests.train.groups import group

ROOT = Path(__file__).parents[2]
STEPS = (("tensorboardX==2.6.5", "tensorboard==2.21.0", "wandb==0.31.0", "msgspec==0.22.0"),)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    with TrainingLog(tmp_path / "log") as written:
        for step in range(3):
            written.update([group([1.0, None, step / 4])], step=step, metrics={"loss": 1 / (step + 1)})
    return tmp_path / "log"


class FakeWriter:
    """SummaryWriter that keeps its calls."""

    made: dict[str, list[tuple[Any, ...]]]

    def __init__(self, folder: str) -> None:
        self.calls = self.made[Path(folder).name] = []

    def add_scalar(self, *call: Any) -> None:
        self.calls.append(call)

    def flush(self) -> None:
        self.calls.append(("flush",))

    def close(self) -> None:
        self.calls.append(("close",))


@pytest.mark.parametrize("module", ["tensorboardX", "torch.utils.tensorboard"])
def test_tensorboard_gets_each_update_once(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    FakeWriter.made = {}
    only(monkeypatch, module, SummaryWriter=FakeWriter)
    updates = read_updates(log)
    with export.tensorboard(tmp_path) as exporter:
        exporter.add({"a": updates[:2]})
        exporter.add({"a": updates, "b": updates[2:]})
        assert ("close",) not in FakeWriter.made["a"]
    points = [call for call in FakeWriter.made["a"] if len(call) > 1]
    assert points == [(name, value, one.step, one.time) for one in updates for name, value in scalars(one).items()]
    assert [calls.count(("flush",)) for calls in FakeWriter.made.values()] == [3, 1]
    assert [calls[-1] for calls in FakeWriter.made.values()] == [("close",)] * 2


def test_wandb_gets_each_update_once_offline(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[dict[str, Any]] = []

    def init(**fields: Any) -> SimpleNamespace:
        rows: list[tuple[int, dict[str, float]]] = []
        runs.append(fields | {"rows": rows})
        return SimpleNamespace(
            log=lambda row, step: rows.append((step, row)), finish=lambda: runs[0].update(finished=True)
        )

    only(monkeypatch, "wandb", init=init, Settings=dict)
    updates = read_updates(log)
    with export.wandb(tmp_path / "out") as exporter:
        exporter.add({"a": updates[:2]})
        exporter.add({"a": updates})
    (run,) = runs
    assert run["rows"] == [(one.step, scalars(one)) for one in updates]
    assert (run["mode"], run["dir"], run["name"], run["finished"]) == ("offline", str(tmp_path / "out"), "a", True)


@pytest.mark.parametrize(("make", "line"), [(export.tensorboard, "tensorboardX"), (export.wandb, "wandb")])
def test_missing_library_is_an_error_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, line: str
) -> None:
    only(monkeypatch, "")
    with pytest.raises(UsageError, match=f"pip install {line}$"):
        make(tmp_path)


def only(monkeypatch: pytest.MonkeyPatch, installed: str, **names: Any) -> None:
    """Makes one of the libraries importable, and the others not."""
    real = importlib.import_module
    module = ModuleType(installed)
    vars(module).update(names)

    def imported(name: str, package: str | None = None) -> ModuleType:
        if name == installed:
            return module
        if name in ("tensorboardX", "torch.utils.tensorboard", "wandb"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", imported)


@pytest.mark.slow
def test_libraries_write_the_numbers_of_the_log(log: Path, tmp_path: Path) -> None:
    kept = os.environ.get("QUINTAIN_VENVS")
    venv = Venv(Path(kept) if kept else tmp_path, STEPS)
    driver = Path(__file__).parent / "drivers" / "exported.py"
    source = str(ROOT / "src")
    found = venv.facts(str(driver), source, str(log), str(tmp_path / "out"), folder=tmp_path)
    updates = read_updates(log)
    expected = {name: points(updates, name) for name in scalars(updates[0])}
    assert found["tensorboard"].keys() == expected.keys()
    for name, values in expected.items():
        assert found["tensorboard"][name] == [[step, pytest.approx(value, rel=1e-6)] for step, value in values], name
    assert [row["_step"] for row in found["wandb"]] == [0, 1, 2]
    for row, update in zip(found["wandb"], updates, strict=True):
        assert {name: row[name] for name in expected} == pytest.approx(scalars(update))


def points(updates: list[Update], name: str) -> list[tuple[int, float]]:
    return [(update.step, scalars(update)[name]) for update in updates]
