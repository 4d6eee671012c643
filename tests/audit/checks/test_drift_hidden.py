"""Tests of unadvertised tools: an inbox without any, and some with one, each found in its own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import action_drift
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CHECKS = [one for one in checks_of(action_drift) if one.id == "x.advertised_tools_exist"]
INBOX = '''
import difflib


class ToolError(Exception):
    pass


TEXT = {"type": "object", "properties": {"mail_id": {"type": "string"}}, "required": ["mail_id"]}
TOOLS = ("get_mail", "archive_mail")


class Inbox:
    """Sound, and it helps whoever misspells a name."""

    def tasks(self):
        return ["archive"]

    def tools(self):
        return [{"name": name, "description": "", "parameters": TEXT} for name in TOOLS]

    def reset(self, task, seed):
        self.mails = {"M1": "here", "M2": "here"}
        return "Archive M1."

    def call(self, name, arguments):
        if name not in TOOLS:
            near = difflib.get_close_matches(name, TOOLS, n=1, cutoff=0.1)
            raise ToolError(f"no {name} here; {near}?")
        return self.known(name, arguments)

    def known(self, name, arguments):
        if arguments.get("mail_id") not in self.mails:
            raise ToolError("missing or unknown mail_id")
        if name == "archive_mail":
            self.mails[arguments["mail_id"]] = "archived"
        return {"mail": self.mails[arguments["mail_id"]]}

    def oracle(self, task):
        return [["get_mail", {"mail_id": "M1"}], ["archive_mail", {"mail_id": "M1"}]]

    def score(self):
        return float(self.mails["M1"] == "archived")


class Compared(Inbox):
    def call(self, name, arguments):
        if name == "flush_everything":
            return {"left": self.mails.clear()}
        return super().call(name, arguments)


class Near(Inbox):
    """It is asked for by a table that the code computes."""

    def call(self, name, arguments):
        if name == "_".join(("delete", "mail")):
            if "mail_id" not in arguments:
                raise ToolError("missing parameter mail_id")
            self.mails.pop(arguments["mail_id"])
            return {"ok": True}
        return super().call(name, arguments)


class Crashing(Inbox):
    """Without its argument it is a traceback, which tells the argument's name."""

    def call(self, name, arguments):
        if name == "shred":
            return {"ok": bool(self.mails.pop(arguments["mail_id"]))}
        return super().call(name, arguments)
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inbox") / "inbox.py"
    path.write_text(INBOX, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("Inbox", []),
        ("Compared", ["flush_everything"]),
        pytest.param("Near", ["delete_mail"], marks=pytest.mark.slow),
        pytest.param("Crashing", ["shred"], marks=pytest.mark.slow),
    ],
)
def test_hidden_tool_is_found(file: Path, name: str, hidden: list[str]) -> None:
    report = audit(Subject(f"{file}:{name}"), CHECKS)
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    assert [one.title for one in report.findings] == [f"{one} can be called, but is not advertised" for one in hidden]
    assert {one.confidence for one in report.findings} <= {"proven"}
