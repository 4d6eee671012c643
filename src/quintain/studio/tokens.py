"""Texts of the tokens that a reply was drawn as, by the file of a tokenizer."""

from __future__ import annotations

from pathlib import Path

import msgspec

from quintain.errors import UsageError


class DrawnTokens(msgspec.Struct):
    """Ids and logprobs of the tokens of a reply."""

    completion: list[int] = []
    logprobs: list[float] = []


class ReplyTokens(msgspec.Struct):
    """Part of a reply that holds its tokens."""

    tokens: DrawnTokens | None = None


class TurnTokens(msgspec.Struct):
    """Part of a turn that holds its tokens."""

    index: int
    reply: ReplyTokens


class TraceTokens(msgspec.Struct):
    """Part of a trace that holds its tokens."""

    turns: list[TurnTokens] = []


class LineTokens(msgspec.Struct):
    """Part of a line of `traces.jsonl` that holds its tokens."""

    trace: TraceTokens


class Tokenizer:
    """Decoder of token ids.

    Args:
        path: A `tokenizer.json`, or the folder that holds it.

    Raises:
        UsageError: The library is not installed, or the file is missing or no tokenizer.
    """

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer as Library
        except ImportError as error:
            raise UsageError("--tokenizer needs tokenizers: pip install 'quintain[tokenizer]'") from error
        file = path / "tokenizer.json" if path.is_dir() else path
        try:
            self._library = Library.from_str(file.read_text("utf-8"))
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}") from error
        except Exception as error:  # The library raises no narrower class.
            raise UsageError(f"{file} is not a file of tokenizers: {error}") from error

    def texts(self, ids: list[int]) -> list[str]:
        """Returns the text of each token behind the one before; empty for an id that the tokenizer does not know.

        A part of a character is U+FFFD.

        Raises:
            UsageError: An id is not from 0 to 2^32 - 1.
        """
        if not all(0 <= one < 2**32 for one in ids):
            raise UsageError("a token id of the record is not from 0 to 2^32 - 1")
        alone = self._decoded([[one] for one in ids])
        pairs = self._decoded([ids[max(0, n - 1) : n + 1] for n in range(len(ids))])
        # Some decoders drop the space at which a text begins, so that only a token behind another one shows its own.
        before = ["", *alone][:-1]
        return [
            pair[len(first) :] if pair.startswith(first) else own
            for first, own, pair in zip(before, alone, pairs, strict=True)
        ]

    def _decoded(self, all_ids: list[list[int]]) -> list[str]:
        return self._library.decode_batch(all_ids, skip_special_tokens=False)

    def of(self, line: bytes, turn: int) -> list[tuple[int, str, float | None]]:
        """Returns id, text and logprob (natural log) of the tokens that a turn of an episode's line was drawn as.

        Raises:
            UsageError: The episode has no such turn, or the record of its tokens is broken.
        """
        try:
            found = [one for one in msgspec.json.decode(line, type=LineTokens).trace.turns if one.index == turn]
        except msgspec.DecodeError as error:
            raise UsageError(f"the record of the tokens is broken: {error}") from error
        if not found:
            raise UsageError(f"the episode has no turn {turn}")
        drawn = found[0].reply.tokens or DrawnTokens()
        if drawn.logprobs and len(drawn.logprobs) != len(drawn.completion):
            raise UsageError(f"turn {turn} has {len(drawn.completion)} tokens, but {len(drawn.logprobs)} logprobs")
        logprobs: list[float | None] = [*drawn.logprobs] or [None] * len(drawn.completion)
        return list(zip(drawn.completion, self.texts(drawn.completion), logprobs, strict=True))
