"""Any OpenAI-compatible chat-completions endpoint: OpenAI itself, vLLM, SGLang, llama.cpp, a gateway."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
from typing import Any

from quintain import codec
from quintain.errors import ContextOverflow, ModelError, UsageError
from quintain.harness import Request
from quintain.state import Rng
from quintain.trace import Reply

from . import wire
from .endpoint import INVALID, Endpoint, HttpAnswer, Trouble, head

_PATH = "/chat/completions"

_INSTEAD = {"max_tokens": "max_completion_tokens", "return_token_ids": "", "logprobs": "", "seed": ""}
"""Fields that not every server knows, and what says the same there; empty: the request goes without."""

_REFUSAL = re.compile(
    r"un(known|supported|recogni[sz]ed|expected)|not (supported|permitted|allowed)|extra", re.IGNORECASE
)


class OpenAI:
    """A model behind HTTP. Needs the extra `http`.

    Once an endpoint has given policy versions, a reply without them is malformed: its staleness would be unknown.

    429, 408, 5xx and transport errors are met with patience: exponential backoff with jitter drawn from the request's
    seed, on top of what `Retry-After` asks for. A malformed reply is asked for once more. Any other 4xx is final.
    Invalid JSON in a call's arguments is the model's own mistake and passed on as it is.

    Args:
        name: The model's name at the endpoint.
        base_url: Up to and with the version, as in "http://localhost:8000/v1"; else OPENAI_BASE_URL, else OpenAI's.
        api_key: Else OPENAI_API_KEY; empty sends none. It appears in no message and no record.
        retries: Attempts after the first, 0 and up.
        timeout_s: Seconds of silence after which an attempt has failed, above 0; a longer Retry-After isn't waited for.
        backoff_s: Seconds before the second attempt, 0 and up; doubled for each further one, at most 30.
        tokens: Ask for token ids and logprobs, and None: do without where a server has none; True: a reply without
            them is invalid; False: do not ask.
        max_reply_bytes: A longer reply is malformed.
        extra: More fields of the request, such as `{"top_k": 20}`; they replace ours of the same name.

    Raises:
        UsageError: The extra is not installed, or an argument is out of its range.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        retries: int = 4,
        timeout_s: float = 600.0,
        backoff_s: float = 0.5,
        tokens: bool | None = None,
        max_reply_bytes: int = 50_000_000,
        extra: dict[str, Any] | None = None,
    ) -> None:
        if not (name and retries >= 0 and timeout_s > 0 and 0 <= backoff_s < math.inf and max_reply_bytes > 0):
            raise UsageError(
                "a model needs a name, retries >= 0, timeout_s > 0, backoff_s >= 0 and max_reply_bytes > 0, got "
                f"{name!r}, {retries}, {timeout_s}, {backoff_s}, {max_reply_bytes}"
            )
        url = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        key = os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key
        self._endpoint = Endpoint(url, _PATH, key=key.strip(), timeout_s=timeout_s, max_bytes=max_reply_bytes)
        # Judges write it into the record, so it has no password and no query.
        self.name, self.base_url = name, str(self._endpoint).removesuffix(_PATH)
        self._retries, self._timeout_s, self._backoff_s = retries, timeout_s, backoff_s
        self._tokens, self._extra = tokens, extra or {}
        self._refused: frozenset[str] = frozenset()
        self._versioned = 0  # 1: the endpoint has given a version per reply; 2: per token.

    async def __call__(self, request: Request) -> Reply:
        """Asks, and asks again while that may help.

        Raises:
            ModelError: It did not help, or could not have; a ContextOverflow if the context is too long.
        """
        rng = Rng(key=hashlib.blake2b(f"backoff/{request.seed}".encode(), digest_size=16).digest())
        malformed = 0
        attempt = 1
        while True:
            try:
                return await self._attempt(request)
            except Trouble as trouble:
                malformed += trouble.kind == INVALID
                patience = trouble.again and trouble.wait_s <= self._timeout_s and malformed < 2
                if attempt > self._retries or not patience:
                    raise self._error(trouble, attempt) from trouble.__cause__
                # Requests refused together must not come back together, whatever wait the server asked for.
                spread_s = min(30.0, self._backoff_s * 2 ** (attempt - 1)) * (0.5 + rng.random() / 2)
                wait_s = trouble.wait_s + spread_s
            await asyncio.sleep(wait_s)
            attempt += 1

    async def aclose(self) -> None:
        """Closes the connections that belong to the running event loop."""
        await self._endpoint.aclose()

    async def _attempt(self, request: Request) -> Reply:
        answer, refused = await self._ask(request)
        if answer.status != 200:
            raise answer.trouble()
        self._refused |= refused
        try:
            return self._complete(wire.reply(answer.data, request, insist=bool(self._tokens)))
        except wire.Aborted as error:
            raise Trouble("provider_unavailable", str(error)) from error
        except (ValueError, RecursionError) as error:
            raise Trouble(INVALID, f"a malformed reply: {error}: {head(answer.data)}") from error

    def _complete(self, reply: Reply) -> Reply:
        """Returns the reply.

        Raises:
            ValueError: The endpoint gave policy versions before, and gives fewer now.
        """
        if reply.tokens is None or reply.tokens.completion:  # Versions per token of no token are not there to see.
            given = 2 if reply.tokens and reply.tokens.versions else int(reply.policy_version is not None)
            if given < self._versioned:
                had = ("", "a policy version", "policy versions per token")[self._versioned]
                raise ValueError(f"earlier replies of this endpoint had {had}, this one does not")
            self._versioned = given
        return reply

    async def _ask(self, request: Request) -> tuple[HttpAnswer, frozenset[str]]:
        """Posts once, and at once again without each field that the server refuses; the answer, and those fields."""
        refused = self._refused
        while True:
            fields = self._fields(request, refused)
            answer = await self._endpoint.post(codec.json(fields))
            found = _refused(answer, fields) - refused
            if self._tokens:
                found -= {"return_token_ids", "logprobs"}
            if not found:
                return answer, refused
            refused |= found

    def _fields(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        fields = wire.body(self.name, request)
        if self._tokens is not False:
            fields |= {"logprobs": True, "return_token_ids": True}
        for name in refused & fields.keys():
            value = fields.pop(name)
            if _INSTEAD[name]:
                fields[_INSTEAD[name]] = value
        return fields | self._extra

    def _error(self, trouble: Trouble, attempts: int) -> ModelError:
        count = f" ({attempts} attempts)" if attempts > 1 else ""
        kind = ContextOverflow if trouble.is_too_long else ModelError
        return kind(self._endpoint.hide(f"{self._endpoint}{count}: {trouble}"), kind=trouble.kind)


def _refused(answer: HttpAnswer, fields: dict[str, Any]) -> frozenset[str]:
    """Returns the fields that a server says it doesn't know, out of those that the request can go without."""
    if answer.status not in {400, 422}:
        return frozenset()
    text = answer.data[:100_000].decode(errors="replace")
    if not _REFUSAL.search(text):
        return frozenset()
    return frozenset(name for name in _INSTEAD if name in fields and re.search(rf"\b{name}\b", text))
