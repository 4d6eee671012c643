"""Decoders for hidden text: finds plain text inside other text, in the usual codes.

The inverse of looking for the base64 of a secret: each token of a text is decoded, twice if needed, whatever surrounds
the secret ("gold=4711"). Only clean text is kept, so that accidental hits are rare.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import codecs
import html
import re
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

LONGEST = 20_000
"""Characters of a text that are looked into."""
WHOLE = 4_000
"""Characters up to which a text is turned round as a whole."""
DEPTH = 2
"""Codes within codes."""
_WORDS = {"zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
          "eight": "8", "nine": "9", "point": ".", "dot": "."}  # fmt: skip
_UNSEEN = "\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad"


def decoded(text: str, depth: int = DEPTH) -> Iterator[tuple[str, str]]:
    """(name of the code, plain text) of everything in a text that can be decoded; at depth, codes within codes."""
    known: set[str] = {text}
    for name, plain in _once(text[:LONGEST]):
        if plain and plain not in known:
            known.add(plain)
            yield name, plain
            if depth > 1 and name in _NESTED:
                yield from ((f"{inner} in {name}", candidate) for inner, candidate in decoded(plain, depth - 1))


def _once(text: str) -> Iterator[tuple[str, str]]:
    for name, pattern, read in _TOKENS:
        for match in re.finditer(pattern, text):
            plain = _clean(read, match.group())
            if plain is not None:
                yield name, plain
    yield from _unescaped(text)
    if len(text) <= WHOLE:
        yield from _turned(text)


def _gunzipped(packed: bytes) -> bytes:
    return zlib.decompress(packed, 31)


_PACKINGS: tuple[Callable[[bytes], bytes], ...] = (zlib.decompress, _gunzipped, bz2.decompress)


def _clean(read: Callable[[str], bytes], token: str) -> str | None:
    """Returns the clean text that a token decodes to, compressed or not."""
    try:
        raw = read(token)
    except (ValueError, binascii.Error):
        return None
    for unpack in _PACKINGS:
        with suppress(zlib.error, OSError, ValueError, EOFError):
            raw = unpack(raw)
            break
    try:
        plain = raw.decode()
    except UnicodeDecodeError:
        return None
    is_clean = all(text.isprintable() or text in "\n\t" for text in plain)
    return plain if is_clean and len(plain) >= 3 else None


def _padded(read: Callable[[str], bytes], size: int) -> Callable[[str], bytes]:
    def decode(token: str) -> bytes:
        bare = token.rstrip("=")
        return read(bare + "=" * (-len(bare) % size))

    return decode


def _bits(token: str) -> bytes:
    return bytes(int(text, 2) for text in re.findall("[01]{8}", token))


_base64 = _padded(lambda text: base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True), 4)
_TOKENS: tuple[tuple[str, str, Callable[[str], bytes]], ...] = (
    ("base64", r"[A-Za-z0-9+/]{6,}={0,2}", _base64),
    ("base64 (URL)", r"[A-Za-z0-9_-]*[_-][A-Za-z0-9_-]*={0,2}", _base64),
    ("hex", r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,-]?){4,}",
     lambda token: bytes.fromhex(re.sub(r"0x|\\x|[^0-9a-fA-F]", "", token))),
    ("base32", r"\b[A-Z2-7]{8,}={0,6}", _padded(base64.b32decode, 8)),
    ("base85", r"[!-~]{10,}", base64.b85decode),
    ("base85 (Adobe)", r"<~[!-u]{5,}~>|[!-u]{10,}", lambda token: base64.a85decode(token.strip("<~>"))),
    ("bits", r"(?:[01]{8} ?){3,}", _bits),
    ("character codes", r"\b(?:\d{2,3}[ ,;]+){3,}\d{2,3}\b",
     lambda token: bytes(int(text) for text in re.findall(r"\d+", token))),
)  # fmt: skip
_NESTED = frozenset((*(name for name, _, _ in _TOKENS), "URL escapes", "HTML escapes", "rot13", "backwards"))


def _unescaped(text: str) -> Iterator[tuple[str, str]]:
    if "%" in text:
        yield "URL escapes", urllib.parse.unquote(text)
    if "&" in text:
        yield "HTML escapes", html.unescape(text)
    if "\\u" in text or "\\x" in text:
        pattern = r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})"
        yield "backslashes", re.sub(pattern, lambda match: chr(int(match[1] or match[2], 16)), text)
    if any(candidate in text for candidate in _UNSEEN):
        yield "letters that are not seen", text.translate(dict.fromkeys(map(ord, _UNSEEN)))
        yield from _unseen_bits(text)


def _unseen_bits(text: str) -> Iterator[tuple[str, str]]:
    """Bits written in two letters that are not seen."""
    run = "".join(candidate for candidate in text if candidate in _UNSEEN)
    kinds = list(dict.fromkeys(run))
    if len(kinds) == 2 and len(run) >= 24:
        for zero in kinds:
            plain = _clean(_bits, "".join("0" if candidate == zero else "1" for candidate in run))
            if plain is not None:
                yield "letters that are not seen", plain


def _turned(text: str) -> Iterator[tuple[str, str]]:
    """The whole of a text, turned round."""
    yield "rot13", codecs.encode(text, "rot13")
    yield (
        "rot47",
        "".join(chr(33 + (ord(candidate) + 14) % 94) if "!" <= candidate <= "~" else candidate for candidate in text),
    )
    yield "backwards", text[::-1]
    yield "words backwards", " ".join(word[::-1] for word in text.split())
    spaced = re.findall(r"(?<!\w)(?:\w[ .\-_,]){3,}\w(?!\w)", text)
    yield from (("letters apart", re.sub(r"[ .\-_,]", "", item)) for item in spaced)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) >= 4:
        yield "first letters", "".join(line[0] for line in lines)
        yield "last letters", "".join(line[-1] for line in lines)
    for run in re.findall(rf"(?:\b(?:{'|'.join(_WORDS)})\b[ ,-]*){{2,}}", text.lower()):
        yield "words for digits", "".join(_WORDS[word] for word in re.findall("[a-z]+", run))
