"""Endpoint: an Engine behind HTTP, for `OpenAI(name, base_url=URL, tokens=True)` and other clients.

POST /v1/chat/completions   reply with token ids, logprobs and `token_versions`
GET /v1/models              the model's name
POST /pause, /resume        stop between two tokens; go on
POST /update_weights        weights as a body of safetensors, version in the query; or JSON: `{"path", "version"}`

It has no keys and loads any file that a request names: serve it to this machine only. From a shell, with a folder of
`save_pretrained`: `python -m quintain.train.endpoint FOLDER --port 8000`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.plugins import package

from .engine import ChatRequest, Engine

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


class _FromDisk(msgspec.Struct):
    path: str
    version: int


def app(engine: Engine) -> Starlette:
    """Returns the application that serves an engine."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    def route(path: str, method: str, answer: Callable[[Request], Awaitable[Any]]) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                body, status = await answer(request), 200
            except (UsageError, msgspec.DecodeError) as error:
                body, status = {"error": {"message": str(error), "type": "invalid_request_error"}}, 400
            except Exception as error:  # noqa: BLE001  # The client has to know what ended its reply.
                body, status = {"error": {"message": f"{type(error).__name__}: {error}", "type": "server_error"}}, 500
            return Response(codec.json(body), status, media_type="application/json")

        return Route(path, endpoint, methods=[method])

    return Starlette(
        routes=[
            route("/v1/chat/completions", "POST", lambda request: _complete(engine, request)),
            route("/v1/models", "GET", lambda request: asyncio.to_thread(_models, engine)),
            route("/pause", "POST", lambda request: asyncio.to_thread(engine.pause)),
            route("/update_weights", "POST", lambda request: _update(engine, request)),
            route("/resume", "POST", lambda request: asyncio.to_thread(engine.resume)),
        ]
    )


async def _complete(engine: Engine, request: Request) -> Any:
    return await engine.complete(msgspec.json.decode(await request.body(), type=ChatRequest))


def _models(engine: Engine) -> Any:
    listed = {"id": engine.name, "object": "model", "created": 0, "owned_by": "quintain"}
    return {"object": "list", "data": [listed | {"max_model_len": engine.context}]}


async def _update(engine: Engine, request: Request) -> Any:
    body = await request.body()
    if request.headers.get("content-type", "").startswith("application/json"):
        given = msgspec.json.decode(body, type=_FromDisk)
        await asyncio.to_thread(engine.update, given.path, given.version)
    else:
        version = msgspec.convert(request.query_params.get("version"), int, strict=False)
        await asyncio.to_thread(engine.update, _tensors(body), version)
    return {"policy_version": engine.version}


def _tensors(body: bytes) -> dict[str, Any]:
    safetensors = package("safetensors.torch", extra="train")
    try:
        found: dict[str, Any] = safetensors.load(body)
    except Exception as error:
        raise UsageError(f"the body is not safetensors: {error}") from error
    return found


@contextlib.contextmanager
def serve(engine: Engine, *, host: str = "127.0.0.1", port: int = 0) -> Generator[str]:
    """Serves an engine from a thread of this process; yields the address up to and with "/v1".

    Args:
        engine: The engine.
        host: Where to listen.
        port: Where to listen; 0 takes a free one.

    Raises:
        UsageError: The port is taken, or the extra is not installed.
    """
    uvicorn = package("uvicorn", extra="train")
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error}") from error
        server = uvicorn.Server(uvicorn.Config(app(engine), log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://{host}:{listening.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            thread.join()


def main() -> None:
    """Serves a folder of `save_pretrained` until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m quintain.train.endpoint", description=main.__doc__)
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    transformers = package("transformers", extra="train")
    model = transformers.AutoModelForCausalLM.from_pretrained(given.folder, attn_implementation="sdpa")
    engine = Engine(model, transformers.AutoTokenizer.from_pretrained(given.folder), name=given.folder)
    with serve(engine, port=given.port) as url, contextlib.suppress(KeyboardInterrupt):
        print(f"listening on {url}", flush=True)  # noqa: T201 (a command)
        threading.Event().wait()


if __name__ == "__main__":
    main()
