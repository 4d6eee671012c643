"""`environment.json` of a run folder: what a reader needs who cannot import the environment."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from quintain import errors, trace
from quintain.cli import main
from quintain.errors import DefinitionError
from quintain.studio.description import Description
from tests.cli.program import DESK
from tests.worlds import environment


def test_a_run_describes_its_environment_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("desk.py").write_text(DESK)
    run = ["run", "desk.py", "--tasks", "1", "--agent", "noop", "-q", "--out", "run"]
    for further in ([], ["--resume"]):
        with pytest.raises(SystemExit) as left:
            main([*run, *further])
        assert not left.value.code
        said = json.loads(Path("run/environment.json").read_bytes())
        assert [tool["name"] for tool in said["tools"]][:2] == ["add", "explode"]
        assert {"name", "level", "weight", "low", "high", "normalize", "after"} <= said["criteria"][0].keys()
        assert said["splits"]["test"] > 0
        Path("run/environment.json").write_bytes(msgspec.json.encode(said | {"kept": True}))
    assert json.loads(Path("run/environment.json").read_bytes())["kept"]


def test_a_split_that_cannot_be_made_has_no_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = environment()

    def broken(split: str) -> object:
        raise DefinitionError(split)

    sizes = Description.of(env).splits
    monkeypatch.setattr(env, "tasks", broken)
    Description.of(env).write(tmp_path)
    found = Description.read(tmp_path)
    assert found == Description.of(env)
    assert found is not None
    assert found.splits == dict.fromkeys(sizes)


RECORD = (trace.Trace, trace.Turn, trace.Reply, trace.Step, trace.Reward, trace.Message, trace.ToolCall, errors.Failure)
INTERFACE = re.compile(r"^export interface (\w+) \{(.*?) ?\}$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("struct", RECORD, ids=lambda struct: struct.__name__)
def test_types_of_the_page_name_fields_of_the_record(struct: type[msgspec.Struct]) -> None:
    page = Path(__file__).parents[2] / "web/src/record.ts"
    lines = dict(INTERFACE.findall(page.read_text("utf-8")))[struct.__name__]
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    flat = re.sub(r"//.*|\{[^}]*\}|\[[^]]*\]", "", lines)
    for name, optional in re.findall(r"(\w+)(\??):", flat):
        assert name in fields, f"{struct.__name__} has no field {name}"
        assert optional or fields[name].required, f"{struct.__name__}.{name} may be absent from the record"
