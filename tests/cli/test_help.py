"""Help, completion, and the options that every command has."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from quintain.cli import program
from quintain.cli.help import EXAMPLES
from tests.cli.conftest import Call

ENV = "desk.py:env"
COMMANDS = {name: examples for group in EXAMPLES.values() for name, examples in group.items()}


def test_help_lists_every_command_in_one_group(call: Call) -> None:
    assert COMMANDS.keys() == program.commands.keys()
    out = call("--help").out
    for title, names in EXAMPLES.items():
        section = out.partition(f"{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == [*names]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_two_examples_that_parse(call: Call, name: str) -> None:
    out = call(name, "--help").out
    for example in COMMANDS[name]:
        assert f"    {example}\n" in out
        words = example.split()
        assert words[:2] == ["quintain", name]
        command, rest = program.commands[name], words[2:]
        while isinstance(command, click.Group):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(name, rest).close()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("quintain run helpd", ["plain,helpdesk"]),
        ("quintain run desk.p", ["file,desk.p"]),
        ("quintain run sales --agent orac", ["plain,oracle"]),
        ("quintain run sales --split te", ["plain,test"]),
        ("quintain run desk.py:env --split te", []),
        ("quintain audit sales --class rese", ["plain,reset_leak"]),
        ("quintain audit sales --twin fals", ["plain,false_resolution"]),
        ("quintain show ru", ["plain,runs/mine"]),
        ("quintain replay run", ["plain,runs/mine"]),
        ("quintain replay-f", ["plain,replay-finding"]),
    ],
)
def test_the_shell_completes(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "run.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    said = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_QUINTAIN_COMPLETE": "bash_complete"}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert call().out.split() == offered


def test_quiet_shows_no_progress_and_no_hints(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "mean" in call("run", ENV, "--tasks", 2, "--out", "here").err
    assert "--list" in call("show", "here").err
    assert call("run", ENV, "--tasks", 2, "--out", "there", "-q").err == ""
    assert call("show", "here", "--quiet").err == ""
    assert call("show", "nowhere", "-q").err.startswith("Error: ")


def test_verbose_logs_each_step_and_shows_the_traceback(desk: Path, call: Call) -> None:
    ended = call("run", ENV, "--tasks", 2, "--out", "here", "-v")
    assert "add-1, member 0: score 1, 2 turns\n" in ended.err
    assert "add-2, member 0: equal\n" in call("replay", "here", "--here", "-v").err
    assert call("replay", "here", "--here").err == ""
    assert "Traceback" in call("show", "nowhere", "--verbose").err
    assert "Traceback" not in call("show", "nowhere").err


def test_checks_are_listed_without_an_environment_and_whole_in_a_pipe(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    ended = call("audit", "--list")
    assert ended.status == 0
    line = next(line for line in ended.out.splitlines() if line.startswith("x.production_declares_the_same "))
    assert "types, enums, defaults and required parameters match production." in line
    assert line.rstrip().endswith("tools, production")
    assert len(ended.out.splitlines()) == 2 + len(json.loads(call("audit", "--list", "--json").out))
    ended = call("audit")
    assert ended.status == 2
    assert "quintain audit ENV" in ended.err
