"""Random requests of a program, which get its API's own answer, never a 500 or a traceback."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quintain.harness import Request
from quintain.trace import Reply
from tests.serve.model.bell import Model, says, talking
from tests.serve.model.test_formats import CONVERSATIONS, TOOLS

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "\x00", "tool", "user", "function", "text", "message", "[" * 2000, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


class Patient(Model):
    """Answers as often as it is asked."""

    async def __call__(self, request: Request) -> Reply:
        return says("ok")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key in a body."""
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@pytest.mark.parametrize("path", CONVERSATIONS)
@settings(max_examples=60)
@given(st.data())
def test_a_body_with_anything_in_it(path: str, data: st.DataObject) -> None:
    body = copy.deepcopy(CONVERSATIONS[path] | {"tools": [TOOLS[path]], "stream": False})
    for _ in range(data.draw(st.integers(1, 3))):
        where, key = data.draw(st.sampled_from(places(body)))
        where[key] = data.draw(JSON)

    async def ask() -> None:
        async with talking(Patient(), "*", listed=True) as talk:
            answer = await talk.client.post(path, content=json.dumps(body).encode())
            assert answer.status_code in {200, 400}, answer.text
            if answer.status_code == 400:
                assert answer.json()["error"]["message"]
            assert talk.episode.trace.failure is None, talk.episode.trace.failure
            await talk.end()

    asyncio.run(ask())


@settings(max_examples=60)
@given(st.binary(max_size=200), st.sampled_from(sorted(CONVERSATIONS)))
@example(b"{}", "v1/responses")  # without the one field that a request must have
def test_bytes_of_any_kind(body: bytes, path: str) -> None:
    async def ask() -> None:
        async with talking(Patient()) as talk:
            assert (await talk.client.post(path, content=body)).status_code == 400

    asyncio.run(ask())
