"""Names of environments and agents on a command line, and the errors of wrong ones."""

from __future__ import annotations

import importlib.metadata
import pickle
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any

import pytest

from quintain import plugins
from quintain.environment import Environment
from quintain.errors import DefinitionError, UsageError
from quintain.harness import ToolLoop
from quintain.models import OpenAI, Scripted
from quintain.state import State
from quintain.task import Task
from quintain.verifier import EpisodeView, Verifier, reward

SOURCE = """
from pathlib import Path
from quintain.environment import Environment
from quintain.harness import ToolLoop
from quintain.state import State
from quintain.task import Task
from quintain.verifier import EpisodeView, Verifier, reward

DATA = Path(__file__).with_name("data.txt")

class Desk(State):
    note: str = ""

@reward
def right(outcome: EpisodeView[Desk]) -> float:
    return 1.0

def tasks(split):
    return [Task(id="a", prompt=DATA.read_text(), start=Desk())]

def make(name: str = "desk") -> Environment[Desk]:
    return Environment(name, tasks=tasks, harness=ToolLoop(), verifier=Verifier(right), state=Desk)

env = make()
number = 7
"""


class Desk(State):
    pass


@reward
def right(outcome: EpisodeView[Desk]) -> float:
    return 1.0


def made(name: str = "made") -> Environment[Desk]:
    tasks = [Task(id="t", prompt="p", start=Desk())]
    return Environment(name, tasks=lambda split: tasks, harness=ToolLoop(), verifier=Verifier(right), state=Desk)


def adapted(text: str, *, data: str = "here") -> Environment[Desk]:
    return made(f"{text}_{data}")


def breaks(text: str = "") -> Environment[Desk]:
    if text == "definition":
        raise DefinitionError("two tools")
    raise OSError("no disk")


class Player:
    name = "player"

    def model(self, task: Task[Any], seed: int) -> Scripted:
        return Scripted([])


standing = made("standing")
player = Player()
not_one = 5


class _Distribution(Distribution):
    def __init__(self, name: str, entries: str) -> None:
        self._texts = {"METADATA": f"Name: {name}\nVersion: 1.2\n", "entry_points.txt": entries}

    def read_text(self, filename: str) -> str | None:
        return self._texts.get(filename)

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


HERE = __name__
MINE = f"""
[quintain.environments]
standing = {HERE}:standing
made = {HERE}:made
five = {HERE}:not_one
broken = quintain_no_such_module:env
missing = {HERE}:nothing
twice = {HERE}:standing
[quintain.adapters]
adapt = {HERE}:adapted
breaks = {HERE}:breaks
[quintain.models]
oracle = quintain.models.agents:oracle
noop = quintain.models.agents:noop
random = quintain.models.agents:random
openai = quintain.models.agents:openai
player = {HERE}:Player
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installs entry points for these tests."""
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])
    distributions = [
        _Distribution("mine", MINE),
        _Distribution("mine", MINE),
        _Distribution("theirs", f"[quintain.environments]\ntwice = {HERE}:made\n"),
    ]

    def entry_points(*, group: str) -> list[EntryPoint]:
        return [entry for one in distributions for entry in one.entry_points if entry.group == group]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith(("env_", "desk_", "boxed")):
            del sys.modules[name]


def refused(spec: str, *says: str, **options: Any) -> None:
    with pytest.raises(UsageError) as caught:
        plugins.environment(spec, **options)
    for words in says:
        assert words in str(caught.value)


# --- entry points ---


def test_names_and_objects() -> None:
    assert plugins.names("adapters") == ("adapt", "breaks")
    assert plugins.names("judges") == ()
    assert plugins.load("environments", "standing") is standing
    with pytest.raises(UsageError, match="unknown group of plugins 'environment'; did you mean 'environments'"):
        plugins.names("environment")
    with pytest.raises(
        UsageError, match=r"unknown plugin of adapters 'adept'; did you mean 'adapt'.*known: adapt, breaks"
    ):
        plugins.load("adapters", "adept")
    with pytest.raises(UsageError, match="known: none"):
        plugins.load("checks", "x")


def test_a_plugin_that_does_not_load_names_its_distribution() -> None:
    with pytest.raises(
        UsageError, match=r"'broken' in environments, a plugin of mine 1\.2, does not load: ModuleNotFound"
    ):
        plugins.load("environments", "broken")
    with pytest.raises(UsageError, match=r"mine 1\.2, does not load: AttributeError"):
        plugins.environment("missing")


def test_two_distributions_with_one_name_are_both_named() -> None:
    refused("twice", "registered twice in environments", "mine 1.2 (", " and theirs 1.2 (", "uninstall one")


# --- environments ---


def test_registered_environments_and_adapters() -> None:
    assert plugins.environment("standing") is standing
    assert plugins.environment("made").name == "made"
    assert plugins.environment("made", name="other").name == "other"
    assert plugins.environment("adapt:retail").name == "retail_here"
    assert plugins.environment("adapt:retail", data="there").name == "retail_there"


def test_a_module_attribute_is_an_environment() -> None:
    assert plugins.environment(f"{HERE}:standing") is standing
    assert plugins.environment(f"{HERE}:made", name="x").name == "x"


def test_an_invalid_name_is_refused_with_suggestions() -> None:
    refused("standin", "unknown environment 'standin'", "did you mean 'standing'", "adapt:...", "path/to/file.py:attr")
    refused("adpat:retail", "unknown environment 'adpat:retail'", "did you mean 'adapt'")
    refused("no such thing!", "known: broken, five")
    refused("", "unknown environment ''")
    refused(":", "unknown environment ':'")
    refused("no.such.module:env", "unknown environment")
    refused("five", "five must be an Environment or a function that makes one, it is of <class 'int'>")
    refused(f"{HERE}:nothing", "has no 'nothing'; it has the Environments: standing")
    refused(f"{HERE}:Player.name.upper", "must be an Environment", "str")


def test_invalid_options_are_refused_with_the_signature() -> None:
    refused("standing", "standing takes no options, got data; it is an Environment, not a function that", data="x")
    refused(
        "made", "made: got an unexpected keyword argument 'data'; it is called as made(name: 'str' = 'made')", data="x"
    )
    refused("adapt:x", "unexpected keyword argument 'dat'", dat="x")
    refused("breaks:x", "breaks:x cannot be made: OSError: no disk (", "line ")
    with pytest.raises(DefinitionError, match="two tools"):
        plugins.environment("breaks:definition")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "data.txt").write_text("from beside")
    (tmp_path / "env.py").write_text(SOURCE)
    return tmp_path / "env.py"


def test_a_file(file: Path) -> None:
    env = plugins.environment(f"{file}:env")
    assert env is plugins.environment(str(file)), "loaded once, and `env` goes without saying"
    assert env.tasks("test")[0].prompt == "from beside"
    assert plugins.environment(f"{file}:make", name="other").name == "other"


def test_a_file_has_a_name_that_lasts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = plugins.environment(str(file))
    name = env.state.__module__
    assert pickle.loads(pickle.dumps(env.state)) is env.state
    monkeypatch.chdir(file.parent)
    assert plugins.environment("env.py") is env, "whichever way leads to it"
    del sys.modules[name]
    again = plugins.environment(str(file))
    assert again is not env
    assert (again.state.__module__, again.fingerprint) == (name, env.fingerprint)


def test_two_files_of_one_name_do_not_mix(file: Path) -> None:
    other = file.parent / "other" / "env.py"
    other.parent.mkdir()
    other.write_text(SOURCE.replace('"desk"', '"bureau"'))
    assert [plugins.environment(str(one)).name for one in (file, other)] == ["desk", "bureau"]


def test_a_file_may_import_its_neighbours_but_hides_nothing(file: Path) -> None:
    (file.parent / "desk_neighbour.py").write_text("NAME = 'next_door'")
    (file.parent / "email.py").write_text("raise RuntimeError('not the standard library')")
    text = SOURCE.replace("env = make()", "import desk_neighbour, email.utils\nenv = make(desk_neighbour.NAME)")
    file.write_text(text)
    assert plugins.environment(str(file)).name == "next_door"


def test_a_file_in_a_package_is_its_module(file: Path) -> None:
    package = file.parent / "boxed" / "inner"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from .desk import env")
    (package / "desk.py").write_text(SOURCE.replace("env = make()", "from .names import NAME\nenv = make(NAME)"))
    (package / "names.py").write_text("NAME = 'boxed_in'")
    env = plugins.environment(f"{package / 'desk.py'}:env")
    assert (env.name, env.state.__module__) == ("boxed_in", "boxed.inner.desk")
    assert plugins.environment(str(package / "__init__.py")) is env
    assert plugins.environment("boxed.inner.desk:env") is env
    copy = file.parent / "copy" / "boxed"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text(SOURCE)
    refused(str(copy / "__init__.py"), "should be the module boxed, but that is <module 'boxed'")


def test_a_module_of_the_current_folder(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    file.rename(file.with_name("desk_here.py"))
    assert plugins.environment("desk_here:env").name == "desk"
    (file.parent / "desk_torn.py").write_text("import quintain_no_such_module")
    refused("desk_torn:env", "desk_torn does not import: ModuleNotFoundError", "desk_torn.py, line 1)")
    (file.parent / "desk_sour.py").write_text("1 / 0")
    refused("desk_sour:env", "desk_sour does not import: ZeroDivisionError")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n1 / 0", "ZeroDivisionError: division by zero ({file}, line 2)"),
        ("x = (", "SyntaxError: '(' was never closed (env.py, line 1)"),
        (
            "\n\nimport quintain_no_such_module",
            "ModuleNotFoundError: No module named 'quintain_no_such_module' ({file}, line 3)",
        ),
        ("import sys\nsys.exit(3)", "SystemExit: 3 ({file}, line 2)"),
        (SOURCE + "make('not a name')", "DefinitionError: an environment's name must be an identifier"),
    ],
)
def test_a_file_that_does_not_import(file: Path, text: str, says: str) -> None:
    file.write_text(text)
    for _ in range(2):
        refused(f"{file}:env", f"{file} does not import: ", says.format(file=file))
    assert not [name for name in sys.modules if name.startswith("env_")]


def test_a_file_without_an_environment_is_refused(file: Path) -> None:
    refused(f"{file}:nothing", f"{file} has no 'nothing'; it has the Environments: env")
    refused(f"{file}:number", "must be an Environment", "int")
    refused(f"{file}:tasks", "missing a required argument: 'split'")
    refused(f"{file.parent}/absent.py:env", "does not exist", "absent.py")


# --- agents ---


def test_agents_are_found_by_name_and_path() -> None:
    assert plugins.agent("oracle").name == "oracle"
    assert plugins.agent("noop").name == "noop"
    assert plugins.agent("random", calls=2).name == "random"
    assert plugins.agent(f"{HERE}:player") is player
    assert isinstance(plugins.agent("player"), Player)
    assert isinstance(plugins.agent(f"{HERE}:Player"), Player)
    task: Task[Any] = Task(id="t", prompt="p", start=Desk())
    agent = plugins.agent("openai:org/model:free", base_url="http://localhost:1/v1", retries=0)
    assert agent.name == "openai:org/model:free"
    model = agent.model(task, 0)
    assert isinstance(model, OpenAI)
    assert model.name == "org/model:free"


def test_an_agent_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "env.py").write_text("from quintain.models import Fixed, Noop\nagent = Fixed(Noop(), 'mine')\n")
    assert plugins.agent(str(tmp_path / "env.py")).name == "mine"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("oracel", "unknown agent 'oracel'; did you mean 'oracle'"),
        ("gpt-5", "; for a model of an endpoint write openai:NAME, as openai:gpt-5"),
        ("openai", "openai needs a text after a colon; write openai:NAME"),
        ("oracle:x", "too many positional arguments"),
        ("openai:", "a model needs a name"),
        (f"{HERE}:standing", "must be an Agent"),
    ],
)
def test_wrong_agents(spec: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        plugins.agent(spec)
    assert says in str(caught.value)


def test_text_of_an_adapter_may_be_a_file() -> None:
    with pytest.raises(DefinitionError, match=r"must be an identifier, got 'retail\.py_here'"):
        plugins.environment("adapt:retail.py")
