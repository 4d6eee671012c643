"""Control: the requests that vLLM and SGLang document, sent to a server that records them."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from quintain.errors import QuintainError, UsageError
from quintain.train.control import Control

pytest.importorskip("httpx", reason="pip install 'quintain[http]'")
INFO = {"names": ["lm_head.weight"], "dtype_names": ["float32"], "shapes": [[2, 2]]}


class Recorder(BaseHTTPRequestHandler):
    """Server that records (path, body) and gives prepared answers."""

    seen: list[tuple[str, Any]]
    answers: dict[str, tuple[int, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.seen.append((self.path, json.loads(body) if body else None))
        status, text = self.answers.get(self.path, (200, "{}"))
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[tuple[str, type[Recorder]]]:
    class Own(Recorder):
        seen: list[tuple[str, Any]] = []
        answers: dict[str, tuple[int, str]] = {}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", Own
    server.shutdown()
    thread.join()
    server.server_close()


def swap(control: Control, weights: Any) -> None:
    with contextlib.closing(control):
        control.pause()
        control.update(weights, 7)
        control.resume()


def test_vllm_gets_the_verbs_of_its_weight_transfer(recorder: tuple[str, type[Recorder]]) -> None:
    url, server = recorder
    server.answers["/finish_weight_update"] = (200, "")
    swap(Control(url, "vllm"), INFO)
    assert server.seen == [
        ("/pause?mode=keep", None),
        ("/start_weight_update", {"is_checkpoint_format": True}),
        ("/update_weights", {"update_info": INFO}),
        ("/finish_weight_update", None),
        ("/resume", {}),
    ]


def test_vllm_finishes_an_update_that_failed(recorder: tuple[str, type[Recorder]]) -> None:
    url, server = recorder
    server.answers["/update_weights"] = (500, "no such parameter")
    with pytest.raises(QuintainError, match="/update_weights answered 500: no such parameter"):
        swap(Control(url, "vllm"), INFO)
    assert server.seen[-1] == ("/finish_weight_update", None)


def test_sglang_loads_a_checkpoint_from_disk(recorder: tuple[str, type[Recorder]]) -> None:
    url, server = recorder
    server.answers["/update_weights_from_disk"] = (200, '{"success": true, "message": "ok"}')
    swap(Control(url, "sglang"), "/models/step-7")
    assert server.seen == [
        ("/pause_generation", {"mode": "retract"}),
        ("/update_weights_from_disk", {"model_path": "/models/step-7", "weight_version": "7"}),
        ("/continue_generation", {}),
    ]


def test_a_checkpoint_that_sglang_could_not_load_is_an_error(recorder: tuple[str, type[Recorder]]) -> None:
    url, server = recorder
    server.answers["/update_weights_from_disk"] = (200, '{"success": false, "message": "wrong shape"}')
    with pytest.raises(QuintainError, match=r"did not load /models/7.*wrong shape"):
        swap(Control(url, "sglang"), "/models/7")


@pytest.mark.parametrize(
    ("server", "weights", "message"),
    [("vllm", "/models/7", "vllm takes a mapping"), ("sglang", INFO, "sglang takes a path")],
)
def test_weights_that_a_server_does_not_take_are_refused(server: Any, weights: Any, message: str) -> None:
    control = Control("http://127.0.0.1:1", server)
    with contextlib.closing(control), pytest.raises(UsageError, match=message):
        control.update(weights, 1)


def test_a_server_that_does_not_answer_is_named() -> None:
    with pytest.raises(QuintainError, match=r"http://127.0.0.1:1/pause does not answer: ConnectError"):
        swap(Control("http://127.0.0.1:1"), {})


def test_an_unknown_server_is_refused() -> None:
    wrong: Any = "triton"
    with pytest.raises(UsageError, match="must be quintain, vllm or sglang, got 'triton'"):
        Control("http://127.0.0.1:1", wrong)
