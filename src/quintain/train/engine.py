"""Engine: draws replies from a causal language model of transformers, for tests, documentation and laptops.

An Engine is a `quintain.harness.Model`; `quintain.train.endpoint` serves one over HTTP. On GPUs, use vLLM or SGLang.

* Requests share each forward pass, and join and leave between two passes (continuous batching).
* The keys and values of a prompt's beginning are taken from any slot that has them (prefix reuse).
* `pause`, `update` and `resume` swap the weights between two tokens. What was cached is computed anew, so a logprob is
  always that of one set of weights.
* A reply of an earlier turn goes into the next prompt as the ids that were drawn, not as text that is tokenized again.
* The model calls tools in the Hermes format: `<tool_call>{"name": NAME, "arguments": {...}}</tool_call>`, any number of
  times. Anything else, malformed JSON included, is text.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import queue
import random
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.harness import Request
from quintain.models import wire
from quintain.plugins import package
from quintain.trace import Reply

PREFILL = 512
"""Most prompt tokens of one row in one forward pass."""
REMEMBERED = 10_000
"""Replies whose ids are kept for later prompts."""
MARK = "the reply that was drawn: 4c1e8f"
"""Text whose place in a rendered prompt is taken by the ids of a reply."""
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


class _Part(msgspec.Struct):
    text: str
    type: Literal["text"]


class _CalledFunction(msgspec.Struct):
    name: str
    arguments: str


class _ChatCall(msgspec.Struct):
    function: _CalledFunction
    id: str = ""


class ChatMessage(msgspec.Struct):
    """Message of a chat-completions request; content is text only."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_ChatCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Content as one text."""
        content = self.content or ""
        return content if isinstance(content, str) else "".join(part.text for part in content)

    def plain(self) -> dict[str, Any]:
        """Returns the message as chat templates take it, with the arguments of calls as objects."""
        found: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.tool_calls:
            calls = [{"name": c.function.name, "arguments": _object(c.function.arguments)} for c in self.tool_calls]
            found["tool_calls"] = [{"type": "function", "function": call} for call in calls]
        return found


class ChatRequest(msgspec.Struct, kw_only=True):
    """Body of a chat-completions request. Fields that would change the reply and that the engine lacks are refused."""

    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1)]
    tools: list[dict[str, Any]] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int | None = None
    n: Literal[1] | None = None
    stream: Literal[False] | None = None
    stop: None = None
    tool_choice: Literal["auto"] | None = None


class _Called(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Row:
    """Request in play: its ids, of which the first `start` are the prompt, and what was drawn."""

    def __init__(self, ids: list[int], limit: int, chat: ChatRequest) -> None:
        self.ids, self.start, self.limit = ids, len(ids), limit
        self.temperature = 1.0 if chat.temperature is None else chat.temperature
        self.top_p = 1.0 if chat.top_p is None else chat.top_p
        self.rng = random.Random(chat.seed)  # noqa: S311 (draws of tokens, no secrets)
        self.logprobs: list[float] = []
        self.versions: list[int] = []
        self.slot = -1
        self.future: Future[_Row] = Future()


class _Slots:
    """Keys and values of each layer by slot and position; a model takes it for its cache.

    Attributes:
        ids: Ids whose keys and values each slot holds.
        free: Slots that no row uses, the longest unused one first.
    """

    def __init__(self, torch: Any, count: int) -> None:
        self._torch, self._count, self._layers = torch, count, list[list[Any]]()
        self.ids: list[list[int]] = [[] for _ in range(count)]
        self.free = deque(range(count))
        self.rows: Any = None
        self.places: Any = None
        self.width = 0

    def update(self, keys: Any, values: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Stores what a layer computed for `places` of `rows`; returns all of these rows up to `width`."""
        new = [one.transpose(1, 2) for one in (keys, values)]
        if layer == len(self._layers):
            self._layers.append([one.new_zeros((self._count, 0, *one.shape[2:])) for one in new])
        stored = self._layers[layer]
        for which, one in enumerate(new):
            if (had := stored[which].shape[1]) < self.width:
                added = one.new_zeros((self._count, max(self.width, 2 * had) - had, *one.shape[2:]))
                stored[which] = self._torch.cat([stored[which], added], 1)
            stored[which][self.rows[:, None], self.places] = one
        keys, values = (one[:, : self.width].index_select(0, self.rows).transpose(1, 2) for one in stored)
        return keys, values

    def get_seq_length(self, layer: int = 0) -> int:
        """Returns 0: positions and masks are given with each call."""
        return 0

    def place(self, row: _Row, active: Sequence[_Row]) -> bool:
        """Gives a row the free slot that spares most; False if a row that is about to be computed will spare more."""
        prompt = row.ids[:-1]  # The last one has to be computed, for its logits.
        shared, source = max((_common(ids, prompt), slot) for slot, ids in enumerate(self.ids))
        if any(_common(one.ids, prompt) > shared for one in active if len(one.ids) - len(self.ids[one.slot]) > 1):
            return False
        extends = source in self.free and shared == len(self.ids[source])
        row.slot = source if extends else self.free[0]
        self.free.remove(row.slot)
        for stored in self._layers if row.slot != source else ():
            for one in stored:
                one[row.slot, :shared] = one[source, :shared]
        self.ids[row.slot] = prompt[:shared]
        return True


class Engine:
    """Model that draws from a causal language model of transformers, in a thread of its own.

    A logprob is that of the temperature, before `top_p`. The same seed gives the same reply, up to rounding that
    depends on which requests share a pass.

    Args:
        model: A causal language model with full attention, implemented as "sdpa" or "eager".
        tokenizer: Its tokenizer, with a chat template.
        slots: Most requests in one pass, and sequences whose keys and values are kept.
        name: Name in records.

    Attributes:
        network: The model. Not named `model`, by which an Agent is known.
        version: Version of the weights.

    Raises:
        UsageError: The extra is not installed, or the model or tokenizer is of another kind.
    """

    def __init__(self, model: Any, tokenizer: Any, *, slots: int = 64, name: str = "local") -> None:
        self._torch: Any = package("torch", extra="train")
        kind, config = model.config._attn_implementation, model.config
        layers = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
        if kind not in {"sdpa", "eager"} or layers:
            raise UsageError(
                f"the engine needs full attention in all layers, as 'sdpa' or 'eager'; the model has {kind!r}"
                f"{''.join(f', {one}' for one in sorted(layers))}; load it with attn_implementation='sdpa', or use vLLM"
            )
        if not tokenizer.chat_template or tokenizer.eos_token_id is None:
            raise UsageError("the engine needs a tokenizer with a chat template and an end-of-sequence token")
        self.network, self.tokenizer, self.name, self.version = model.eval(), tokenizer, name, 0
        self.context: int = config.max_position_embeddings
        ends: Any = model.generation_config.eos_token_id
        self._ends: set[int] = {tokenizer.eos_token_id, *([ends] if isinstance(ends, int) else ends or ())}
        parameters = inspect.signature(model.forward).parameters
        self._cache = "cache" if "cache" in parameters else "past_key_values"  # transformers 5.24 renamed it.
        self._drawn: OrderedDict[str, list[int]] = OrderedDict()
        self._slots = _Slots(self._torch, slots)
        self._arrivals: queue.SimpleQueue[_Row | None] = queue.SimpleQueue()
        self._waiting, self._active = deque[_Row](), list[_Row]()
        self._lock, self._go = threading.Lock(), threading.Event()
        self._go.set()
        self._closed = False
        threading.Thread(target=self._run, name="quintain engine", daemon=True).start()

    async def __call__(self, request: Request) -> Reply:
        """Draws a reply, with token ids, logprobs and a version per token."""
        chat = msgspec.convert(wire.body(self.name, request), ChatRequest)
        return wire.reply(codec.json(await self.complete(chat)), request, insist=True)

    async def complete(self, chat: ChatRequest) -> dict[str, Any]:
        """Returns the body of a chat-completions response.

        Raises:
            UsageError: The prompt leaves no room in the model's context, or the chat template refuses it.
        """
        ids = self._prompt(chat)
        most = chat.max_completion_tokens or chat.max_tokens or self.context
        if len(ids) >= self.context:
            raise UsageError(f"the prompt has {len(ids)} tokens, and prompt and reply together at most {self.context}")
        if self._closed:
            raise UsageError("the engine is closed; make another one")
        row = _Row(ids, min(len(ids) + most, self.context), chat)
        self._arrivals.put(row)
        await asyncio.wrap_future(row.future)
        return self._response(chat, row)

    def pause(self) -> None:
        """Stops drawing between two tokens; requests wait for `resume`."""
        self._go.clear()
        with self._lock:
            pass  # The pass that was running is over.

    def update(self, weights: Mapping[str, Any] | str | Path, version: int) -> None:
        """Replaces weights, also without `pause`; tokens from here on have the new version.

        Args:
            weights: Tensors by the names of the model's state, not necessarily all; or a safetensors file, or a folder
                of them. An empty mapping: somebody else has changed the weights in place.
            version: Version of the new weights.

        Raises:
            UsageError: A name is unknown, a shape differs, or a value is not finite. Nothing was changed.
        """
        given = weights if isinstance(weights, Mapping) else load(Path(weights))
        state = self.network.state_dict()
        for name, tensor in given.items():
            if name not in state:
                raise UsageError(f"the model has no weight {name!r}; it has {', '.join(itertools.islice(state, 3))}, …")
            if tensor.shape != state[name].shape:
                shapes = f"{tuple(tensor.shape)}, the model's is {tuple(state[name].shape)}"
                raise UsageError(f"the shape of the new {name!r} is {shapes}; send weights of the same model")
            if not tensor.isfinite().all():
                raise UsageError(f"the new {name!r} of version {version} has NaN or infinity; stop the trainer")
        was_going = self._go.is_set()
        self.pause()
        with self._lock, self._torch.no_grad():
            for name, tensor in given.items():
                state[name].copy_(tensor)
            for ids in self._slots.ids:
                ids.clear()
            self.version = version
        if was_going:
            self.resume()

    def resume(self) -> None:
        """Goes on drawing."""
        self._go.set()

    def close(self) -> None:
        """Ends the thread; requests in play fail."""
        self._closed = True
        self._go.set()
        self._arrivals.put(None)

    # --- text: prompts with the ids that were drawn, and replies with calls ---

    def _prompt(self, chat: ChatRequest) -> list[int]:
        """Returns the ids of the last known reply and all before it, and of what the template writes after it."""
        for count in range(len(chat.messages) - 1, 0, -1):
            if ids := self._drawn.get(_key(chat, count)):
                marked = [*chat.messages[: count - 1], ChatMessage("assistant", MARK), *chat.messages[count:]]
                _, mark, rest = self._render(chat, marked).rpartition(MARK)
                if mark:
                    # The template ends the reply, too.
                    end = self.tokenizer.decode([ids[-1]]) if ids[-1] in self._ends else ""
                    return ids + self._tokens(rest.removeprefix(end))
        return self._tokens(self._render(chat, chat.messages))

    def _render(self, chat: ChatRequest, messages: Sequence[ChatMessage]) -> str:
        plain = [message.plain() for message in messages]
        how = {"tools": chat.tools, "tokenize": False, "add_generation_prompt": True}
        try:
            return str(self.tokenizer.apply_chat_template(plain, **how))
        except Exception as error:
            raise UsageError(f"the chat template refuses the messages: {error}") from error

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _response(self, chat: ChatRequest, row: _Row) -> dict[str, Any]:
        drawn = row.ids[row.start :]
        is_ended = drawn[-1] in self._ends
        text = self.tokenizer.decode(drawn[:-1] if is_ended else drawn)
        number = f"{chat.seed:x}" if chat.seed is not None else f"{row.rng.getrandbits(64):x}"
        content, calls = parse(text, number)
        listed = [{**msgspec.to_builtins(call), "type": "function"} for call in calls]
        message = {"role": "assistant", "content": content, **({"tool_calls": listed} if calls else {})}
        answered = msgspec.structs.replace(chat, messages=[*chat.messages, ChatMessage("assistant", content, calls)])
        self._drawn[_key(answered, len(answered.messages))] = row.ids
        if len(self._drawn) > REMEMBERED:
            self._drawn.popitem(last=False)
        found = zip(self.tokenizer.convert_ids_to_tokens(drawn), row.logprobs, strict=True)
        logprobs = [{"token": token, "logprob": one, "bytes": None, "top_logprobs": ()} for token, one in found]
        finish = "length" if not is_ended else "tool_calls" if calls else "stop"
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
        choice |= {"logprobs": {"content": logprobs}, "token_ids": drawn, "token_versions": row.versions}
        counts = {"prompt_tokens": row.start, "completion_tokens": len(drawn), "total_tokens": len(row.ids)}
        head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": int(time.time())}
        body = {"model": self.name, "choices": [choice], "usage": counts}
        return {**head, **body, "prompt_token_ids": row.ids[: row.start], "policy_version": row.versions[-1]}

    # --- tokens: the thread's own, under the lock ---

    def _run(self) -> None:
        while self._collect():
            self._go.wait()
            if self._closed:
                break
            with self._lock:
                try:
                    self._step()
                except Exception as error:  # noqa: BLE001  # Handed to those who asked.
                    self._end(list(self._active), error)
        left = [row for _ in range(self._arrivals.qsize()) if (row := self._arrivals.get()) is not None]
        closed = UsageError("the engine was closed while it drew this reply")
        self._end([*self._active, *self._waiting, *left], closed)

    def _collect(self) -> bool:
        """Takes what has arrived, and waits for it if there is nothing else to do; False when the engine is closed."""
        while True:
            try:
                row = self._arrivals.get(block=not (self._waiting or self._active))
            except queue.Empty:
                return True
            if row is None:
                return False
            self._waiting.append(row)

    def _step(self) -> None:
        """Admits rows, and computes one pass: of prompts if there are any, else one token of each row."""
        self._end([row for row in self._active if row.future.cancelled()])
        for _ in range(min(len(self._waiting), len(self._slots.free))):
            row = self._waiting.popleft()
            if row.future.cancelled():
                continue
            (self._active if self._slots.place(row, self._active) else self._waiting).append(row)
        known = self._slots.ids
        prompts = [row for row in self._active if len(row.ids) - len(known[row.slot]) > 1]
        if not (rows := prompts or self._active):
            return
        begins = [len(known[row.slot]) for row in rows]
        ends = [min(len(row.ids), begin + PREFILL) for row, begin in zip(rows, begins, strict=True)]
        logits = self._forward(rows, begins, ends)
        for row, begin, end in zip(rows, begins, ends, strict=True):
            known[row.slot] += row.ids[begin:end]
        whole = [number for number, row in enumerate(rows) if ends[number] == len(row.ids)]
        if whole:
            self._draw([rows[number] for number in whole], logits[whole])

    def _forward(self, rows: Sequence[_Row], begins: Sequence[int], ends: Sequence[int]) -> Any:
        """Computes the tokens from begin to end of each row; returns the logits after the last one, a row each.

        Shorter rows repeat their first token at its place, which computes and stores the same again.
        """
        torch, slots, device = self._torch, self._slots, self.network.device
        most = max(end - begin for begin, end in zip(begins, ends, strict=True))
        listed = [[max(begin, end - most + n) for n in range(most)] for begin, end in zip(begins, ends, strict=True)]
        ids = torch.tensor([[row.ids[n] for n in at] for row, at in zip(rows, listed, strict=True)], device=device)
        slots.rows, slots.width = torch.tensor([row.slot for row in rows], device=device), max(ends)
        slots.places = torch.tensor(listed, device=device)
        hidden = torch.arange(slots.width, device=device) > slots.places[:, None, :, None]
        mask = torch.zeros(hidden.shape, dtype=self.network.dtype, device=device)
        mask = mask.masked_fill(hidden, torch.finfo(self.network.dtype).min)
        how = {"attention_mask": mask, "position_ids": slots.places, "use_cache": True, self._cache: slots}
        with torch.no_grad():
            return self.network(input_ids=ids, logits_to_keep=1, **how).logits[:, -1].float()

    def _draw(self, rows: Sequence[_Row], logits: Any) -> None:
        """Appends one token to each row, by the inverse of its distribution function at a number of the row's own."""
        torch, device = self._torch, logits.device
        heat = torch.tensor([[row.temperature or 1.0] for row in rows], device=device)
        logprobs = torch.log_softmax(logits / heat, -1)
        chances = logprobs.double().exp()
        if any(row.top_p < 1 for row in rows):
            best, order = chances.sort(descending=True)
            nucleus = torch.tensor([[row.top_p] for row in rows], device=device, dtype=best.dtype)
            best[best.cumsum(-1) - best >= nucleus] = 0
            chances = torch.zeros_like(best).scatter(1, order, best)
        sums = chances.cumsum(-1)
        points = torch.tensor([[row.rng.random()] for row in rows], device=device, dtype=sums.dtype) * sums[:, -1:]
        drawn = torch.searchsorted(sums, points, right=True).clamp(max=sums.shape[1] - 1)
        greedy = torch.tensor([[row.temperature == 0] for row in rows], device=device)
        drawn = torch.where(greedy, logits.argmax(-1, keepdim=True), drawn)
        found = logprobs.gather(1, drawn)
        over: list[_Row] = []
        for row, token, logprob in zip(rows, drawn[:, 0].tolist(), found[:, 0].tolist(), strict=True):
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.versions.append(self.version)
            if token in self._ends or len(row.ids) >= row.limit:
                over.append(row)
        self._end(over)

    def _end(self, rows: Sequence[_Row], error: Exception | None = None) -> None:
        for row in rows:
            if row in self._active:
                self._active.remove(row)
                self._slots.free.append(row.slot)
                if error:
                    self._slots.ids[row.slot].clear()
            with contextlib.suppress(InvalidStateError):  # It was cancelled meanwhile.
                row.future.set_exception(error) if error else row.future.set_result(row)


def parse(text: str, number: str = "0") -> tuple[str, list[_ChatCall]]:
    """Returns a reply's text without its tool calls, and the calls; their ids begin with "call_" and the number."""
    calls: list[_ChatCall] = []

    def take(found: re.Match[str]) -> str:
        try:
            called = msgspec.json.decode(found[1].strip(), type=_Called)
        except (msgspec.DecodeError, RecursionError):
            return found[0]
        arguments = bytes(called.arguments).decode()
        calls.append(_ChatCall(_CalledFunction(called.name, arguments), f"call_{number}_{len(calls)}"))
        return ""

    content = _CALL.sub(take, text)
    return content.strip() if calls else content, calls


def load(path: Path) -> dict[str, Any]:
    """Returns the tensors of a safetensors file, or of all such files in a folder.

    Raises:
        UsageError: The file does not exist.
    """
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise UsageError(f"no safetensors at {str(path)!r}; give a file, or a folder with *.safetensors")
    read = package("safetensors.torch", extra="train").load_file
    return {name: tensor for file in files for name, tensor in read(file).items()}


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Returns the length of the longest common beginning; slices compare faster than a loop."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def _key(chat: ChatRequest, count: int) -> str:
    """Returns the name of a conversation's first messages; texts in parts and in one piece have the same."""
    said = [(one.text, one.role, one.tool_calls or [], one.tool_call_id) for one in chat.messages[:count]]
    return codec.digest(codec.dumps((said, chat.tools)))


def _object(arguments: str) -> Any:
    """Returns the parsed arguments of a call; as text if they are no JSON."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
