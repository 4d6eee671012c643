"""Server of the official SDK, over both transports, as a plain subject."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="pip install 'quintain[audit-mcp]'")

from quintain.audit.subjects import SubjectFailure, mcp
from quintain.errors import UsageError
from tests.audit.subjects import mcp_server
from tests.audit.subjects.serving import serving
from tests.audit.subjects.threads import no_thread_stays

COMMAND = f"stdio:{shlex.join([sys.executable, str(Path(mcp_server.__file__))])}"


@pytest.fixture(params=["http", pytest.param("stdio", marks=pytest.mark.slow)])
def subject(request: pytest.FixtureRequest) -> Generator[mcp.McpSubject]:
    if request.param == "stdio":
        one = mcp.make(COMMAND)()
        yield one
        one.close()
        return
    with serving(mcp_server.server.streamable_http_app()) as url:
        one = mcp.make(f"{url}/mcp")()
        yield one
        one.close()


def test_tools_are_listed_and_called(subject: mcp.McpSubject) -> None:
    tools = {tool["name"]: tool for tool in subject.tools()}
    assert tools["add"]["parameters"]["required"] == ["one"]
    assert tools["add"]["description"] == "Add two numbers."
    assert subject.responses()["add"]["default"]["type"] == "object"
    assert subject.reset("service", 0) == "Write notes."
    assert subject.call("add", {"one": 1, "two": 2}) == {"sum": 3}
    assert subject.call("words", {}) == "a\nb"
    assert subject.call("refuse", {})["error"].endswith("not today")
    for name, arguments in (("add", {"one": "x"}), ("add", {}), ("nope", {}), ("add", {"one": "\ud800"})):
        assert set(subject.call(name, arguments)) == {"error"}
    assert subject.call("add", {"one": 1}) == {"sum": 1}
    assert subject.absent == ("score",)
    json.dumps([tools, subject.responses()])
    with pytest.raises(UsageError, match="one task"):
        subject.reset("other", 0)


def test_reset_opens_another_session(subject: mcp.McpSubject) -> None:
    for _ in range(2):
        subject.reset("service", 0)
        counted = [subject.call("count", {}) for _ in range(2)]
        assert counted == [{"result": "1"}, {"result": "2"}]


def _children() -> set[str]:
    """Returns the processes that this one has started."""
    lists = (file.read_text("utf-8") for file in Path("/proc/self/task").glob("*/children"))
    return {child for listed in lists for child in listed.split()}


@pytest.mark.slow
def test_close_ends_process_and_thread() -> None:
    before = _children()
    with no_thread_stays():
        subject = mcp.make(COMMAND)()
        assert subject.reset("service", 0) == "Write notes."
        assert subject.call("add", {"one": 1}) == {"sum": 1}
        assert len(_children() - before) == 1
        subject.close()
    assert _children() <= before


@pytest.mark.slow
def test_a_server_that_goes_away_is_a_failure() -> None:
    subject = mcp.make(COMMAND)()
    subject.reset("service", 0)
    with pytest.raises(SubjectFailure) as caught:
        subject.call("leave", {})
    assert caught.value.kind == "transport_peer_drop"
    subject.reset("service", 0)
    assert subject.call("add", {"one": 1}) == {"sum": 1}
    subject.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{COMMAND} --broken", "no configuration"),
        ("stdio:/no/such/program", "program"),
        ("http://127.0.0.1:1/mcp", "127.0.0.1:1"),
    ],
)
def test_a_server_that_is_not_there_is_a_failure(text: str, words: str) -> None:
    with no_thread_stays():
        subject = mcp.make(text)()
        with pytest.raises(SubjectFailure, match=words) as caught:
            subject.reset("service", 0)
        assert caught.value.kind == "transport_unreachable"
        subject.close()


@pytest.mark.parametrize("text", ["", "stdio:", "stdio", "ftp://x"])
def test_a_text_without_a_server_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="mcp: takes"):
        mcp.make(text)
