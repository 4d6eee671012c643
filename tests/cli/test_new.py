from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from quintain.cli.new import TEMPLATES
from tests.cli.conftest import Call
from tests.cli.program import document, quintain


def install(package: Path, site: Path) -> None:
    """Installs a package's modules and entry points as pip does."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    record = site / f"{project['name']}-{project['version']}.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (record / "entry_points.txt").write_text("\n".join(groups))


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_package_passes_its_own_tests_and_runs_by_its_name(tmp_path: Path, template: str) -> None:
    made = quintain("new", "my_desk", "--template", template, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "pytest" in made.stdout
    package = tmp_path / "my_desk"
    files = sorted(str(path.relative_to(package)) for path in package.rglob("*") if path.is_file())
    assert files == [
        "README.md",
        "pyproject.toml",
        "src/my_desk/__init__.py",
        "src/my_desk/environment.py",
        "tests/test_my_desk.py",
    ]
    assert not [
        path for path in files if "@" in (package / path).read_text().replace("@qn.", "").replace("@pytest", "")
    ]
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))},
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "passed" in tested.stdout
    install(package, tmp_path / "site")
    path = f"{tmp_path / 'site'}{os.pathsep}{package / 'src'}"
    ran = quintain("run", "my_desk", "--tasks", 5, "--json", cwd=tmp_path, PYTHONPATH=path)
    assert ran.returncode == 0, ran.stderr
    said = document(ran.stdout)
    assert (said["environment"], said["episodes"], said["mean_reward"]) == ("my_desk", 5, 1.0)
    assert "my_desk" in quintain("list", cwd=tmp_path, PYTHONPATH=path).stdout


@pytest.mark.parametrize(
    ("template", "lines", "words"),
    [("qa", 15, "from_rows"), ("tools", 50, "transfer"), ("database", 70, "Database")],
)
def test_a_template_is_one_page_that_its_oracle_solves(
    tmp_path: Path, call: Call, template: str, lines: int, words: str
) -> None:
    name = f"small_{template}"
    call("new", name, "--template", template, "--path", tmp_path)
    file = tmp_path / name / "src" / name / "environment.py"
    assert sum(bool(line.strip()) for line in file.read_text().splitlines()) <= lines
    assert words in file.read_text()
    extra = "[database]" if template == "database" else ""
    assert f'dependencies = ["quintain{extra}>=' in (tmp_path / name / "pyproject.toml").read_text()
    for agent, mean in (("oracle", 1.0), ("noop", 0.0)):
        out = ("--out", tmp_path / agent, "--json")
        assert document(call("run", file, "--tasks", 3, "--agent", agent, *out).out)["mean_reward"] == mean


def test_tools_is_the_default_template(tmp_path: Path, call: Call) -> None:
    for name, options in (("one", ()), ("two", ("--template", "tools"))):
        call("new", "desk", "--path", tmp_path / name, *options)
    one, two = ((tmp_path / name / "desk/src/desk/environment.py").read_text() for name in ("one", "two"))
    assert one == two


def test_an_unknown_template_is_refused(tmp_path: Path, call: Call) -> None:
    ended = call("new", "desk", "--path", tmp_path, "--template", "chess")
    assert ended.status == 2
    assert "'qa', 'tools', 'database'" in ended.err


@pytest.mark.parametrize("name", ["My_Desk", "my-desk", "2desks", "class", "json", "quintain", "a b", "../up"])
def test_a_name_that_no_package_can_have(tmp_path: Path, call: Call, name: str) -> None:
    ended = call("new", name, "--path", tmp_path)
    assert ended.status == 2
    assert name in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, call: Call) -> None:
    (tmp_path / "file").touch()
    ended = call("new", "mine", "--path", tmp_path / "file")
    assert ended.status == 2
    assert "cannot make" in ended.err


def test_new_refuses_to_overwrite_files(tmp_path: Path, call: Call) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("precious")
    ended = call("new", "mine", "--path", tmp_path)
    assert ended.status == 2
    assert "already exists" in ended.err
    assert (tmp_path / "mine" / "README.md").read_text() == "precious"
