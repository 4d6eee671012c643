"""Server of the Open Reward Standard, over real sockets, as a plain subject."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from quintain.audit.subjects import SubjectFailure, ors
from quintain.errors import UsageError
from tests.audit.subjects.ors_server import Guess
from tests.audit.subjects.serving import serving


def test_an_episode_is_a_session() -> None:
    server = Guess()
    with serving(server.app) as url:
        make = ors.make(f"{url}/Guess")
        subject, other = make(), make()
        assert subject.tasks() == ["test/0", "test/1"]
        assert [tool["name"] for tool in subject.tools()] == ["guess"]
        assert subject.reset("test/1", 0) == "Which pet purrs?"
        assert subject.tools() == [
            {"name": "hint", "description": "A hint.", "parameters": {"type": "object", "properties": {}}}
        ]
        assert subject.score() == {"score": 0.0, "last": None}
        assert subject.call("guess", {"word": "look"}) == "  " + "x" * 9000
        assert subject.score() == {"score": 0.0, "last": None}
        subject.call("guess", {"word": "\ud800"})
        other.reset("test/0", 0)
        assert other.call("guess", {"word": "dog"})
        assert other.score() == {"score": 1.0, "last": 1.0}
        assert [block["type"] for block in subject.call("guess", {"word": "picture"})] == ["text", "image"]
        assert subject.absent == ()
        subject.answer("cat")
        assert subject.score() == {"score": 0.5, "last": 1.0}
        assert subject.hidden("test/1") == {"answer": "cat"}
        subject.reset("test/1", 0)
        assert subject.score() == {"score": 0.0, "last": None}
        subject.close()
        other.close()
        assert server.sessions == {}
        assert len(server.deleted) == 3


def test_client_errors_are_observations_and_server_errors_failures() -> None:
    server = Guess(counts=False, terminal=False)
    with serving(server.app) as url:
        subject = ors.make(url)()
        assert subject.tasks() == ["test/0", "test/1"]
        assert subject.absent == ("answer",)
        subject.reset("test/0", 0)
        assert subject.call("nope", {}) == {"error": "'nope' is not a valid tool"}
        assert subject.call("guess", {"word": "422"})["error"]
        for word, words in (
            ("crash", "RuntimeError: two\nlines"),
            ("break off", "broke off"),
            ("nonsense", "make no JSON"),
            ("500", "answered 500: oops"),
        ):
            with pytest.raises(SubjectFailure, match=words):
                subject.call("guess", {"word": word})
        server.sessions.clear()
        with pytest.raises(SubjectFailure, match="not found") as caught:
            subject.call("guess", {"word": "dog"})
        assert caught.value.kind == "session_lost"
        with pytest.raises(UsageError, match="a task is called test/0"):
            subject.reset("train/0", 0)
        with pytest.raises(SubjectFailure, match="Invalid index"):
            subject.reset("test/9", 0)
        with pytest.raises(SubjectFailure, match="does not answer task"):
            subject.hidden("test/9")
        subject.close()


def test_a_missing_server_is_refused() -> None:
    with serving(Starlette()) as url, pytest.raises(UsageError, match=r"has no environment ''; it lists .*404"):
        ors.make(url)
    with pytest.raises(UsageError, match="ConnectError"):
        ors.make(url)
    with serving(Guess().app) as url, pytest.raises(UsageError, match=r"no environment 'nope'; it lists \['guess'\]"):
        ors.make(f"{url}/nope")
    with pytest.raises(UsageError, match="ors: takes http"):
        ors.make("nowhere")
