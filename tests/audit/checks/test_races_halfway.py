"""Calls that are refused halfway, and memory that every episode leaves behind; sound look-alikes are silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import races
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

DEPOT = '''
import copy

ID = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1, "maximum": 100000}

def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

class Depot:
    """Parcels are put on vans, which take so many and then leave."""

    LOG = []

    def tasks(self):
        return ["load 1", "load 2", "load 3"]

    def tools(self):
        return [tool("get_van", van_id=ID), tool("load", parcel_id=ID, van_id=ID, count=COUNT), tool("send", van_id=ID)]

    def reset(self, task, seed):
        self.tries = 0
        self.vans = {f"V{n}": {"id": f"V{n}", "load": 0, "gone": n == 2} for n in range(3)}
        self.parcels = {f"P{n}": {"id": f"P{n}", "van": None, "left": 40} for n in range(4)}
        return f"Put a few of parcel P1 on van V1 and send it: {task}."

    def call(self, name, arguments):
        self.tries += 1
        for key, kind in (("parcel_id", str), ("van_id", str), ("count", int)):
            if key in arguments and type(arguments[key]) is not kind:
                return {"error": f"{key} is of another type"}
        wanted = next((one for one in self.tools() if one["name"] == name), None)
        if wanted is None or set(arguments) != set(wanted["parameters"]["properties"]):
            return {"error": "no such call"}
        return getattr(self, name)(**arguments)

    def get_van(self, van_id):
        return dict(self.vans[van_id]) if van_id in self.vans else {"error": "no such van"}

    def load(self, parcel_id, van_id, count):
        if parcel_id not in self.parcels or van_id not in self.vans:
            return {"error": "no such parcel or van"}
        if self.vans[van_id]["gone"] or not 0 < count <= self.parcels[parcel_id]["left"]:
            return {"error": "that cannot be loaded"}
        self.parcels[parcel_id]["left"] -= count
        self.vans[van_id]["load"] += count
        return {"ok": True}

    def send(self, van_id):
        if van_id not in self.vans or self.vans[van_id]["gone"]:
            return {"error": "no such van"}
        self.vans[van_id]["gone"] = True
        return {"ok": True}

    def state(self):
        tables = {"vans": list(self.vans.values()), "parcels": list(self.parcels.values()), "tries": self.tries}
        return copy.deepcopy(tables)

    def score(self):
        return float(self.vans["V1"]["gone"] and self.vans["V1"]["load"] > 0)

    def oracle(self, task):
        return [["get_van", {"van_id": "V1"}], ["load", {"parcel_id": "P1", "van_id": "V1", "count": int(task[-1])}],
                ["send", {"van_id": "V1"}]]

class Gone(Depot):
    """Parcels are taken off the shelf before somebody looks whether the van is still there."""

    def load(self, parcel_id, van_id, count):
        if parcel_id in self.parcels and van_id in self.vans and 0 < count <= self.parcels[parcel_id]["left"]:
            self.parcels[parcel_id]["left"] -= count
            if self.vans[van_id]["gone"]:
                return {"error": "that van has gone"}
            self.vans[van_id]["load"] += count
            return {"ok": True}
        return {"error": "that cannot be loaded"}

class Overfull(Depot):
    """A van is loaded before somebody counts what is there."""

    def load(self, parcel_id, van_id, count):
        left = self.parcels[parcel_id]["left"] if parcel_id in self.parcels else 0
        if van_id in self.vans and not self.vans[van_id]["gone"] and count > left:
            self.vans[van_id]["load"] += count
        return super().load(parcel_id, van_id, count)

class Remembering(Depot):
    """Every answer is kept, for ever."""

    def call(self, name, arguments):
        self.LOG.append([name] * 1000)
        return super().call(name, arguments)

class Logging(Depot):
    """A line is kept of each call of the episode; and one of the last thousand."""

    def reset(self, task, seed):
        self.lines = []
        return super().reset(task, seed)

    def call(self, name, arguments):
        self.lines.append(str(arguments) * 100)
        self.LOG.append(name)
        del self.LOG[:-1000]
        return super().call(name, arguments)
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("depot") / "depot.py"
    path.write_text(DEPOT, "utf-8")
    return path


def _audited(file: Path, factory: str, *ids: str) -> Report:
    report = audit(Subject(f"{file}:{factory}"), [one for one in checks_of(races) if one.id in ids])
    assert all(one.status == "checked" for one in report.checks), [(one.check, one.reason) for one in report.checks]
    return report


@pytest.mark.parametrize("factory", ["Depot", pytest.param("Logging", marks=pytest.mark.slow)])
def test_a_sound_depot_is_left_in_peace(file: Path, factory: str) -> None:
    assert _audited(file, factory, "x.memory").findings == ()


def test_memory_that_grows_with_each_episode_is_proven(file: Path) -> None:
    (found,) = _audited(file, "Remembering", "x.memory").findings
    assert (found.class_, found.part, found.severity, found.confidence) == ("races", "S", "error", "proven")
    assert found.observed["bytes per episode"] > 3 * 8000
