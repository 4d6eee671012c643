"""Search for hidden values in answers: under a telling label, as an object, as long text, or encoded.

A value of the truth that stands in the world is data, not a leak: the right account number is in the CRM, or the task
could not be solved. The truth *as truth* must not be there: a field called `expected` that holds it, the whole object,
the text of the tests, or a value in base64.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number, leaves, parsed

STRONG = re.compile(
    r"(?:^|_)(?:gold|golden|ground_?truth|solution|oracle|hidden|answer_?key|secret|canary|grader|rubric|truth"
    r"|(?:expected|correct|right|true|reference|model|gold)_(?:answer|value|result|output|total|resolution|status"
    r"|action|tool|call|calls|outcome|reply|response|fix|label|class|category|choice|option|state|amount|score|id"
    r"|name))(?:_|$)"
)  # fmt: skip
"""Field names that only a truth has."""
WEAK = re.compile(
    r"(?:^|_)(?:answer|expected|correct|right|target|label|reference|truth|key|verdict|tests?|hint)(?:_|$)"
)
"""Field names that a truth has, and other things too."""
INNER = re.compile(r"^_|(?:^|_)(?:debug|internal|meta|metadata|trace|private|raw|eval|check|checks)(?:_|$)")
"""Field names of what was left in for those who build it."""
RIGHT = re.compile(r"(?:^|_)(?:is_)?(?:correct|right|gold|answer|solution|truth)(?:_|$)|^expected$")
"""Field names of a mark on the right one of several choices."""
_IS = r"[ \"'`]*(?:=>?|:|->|is|was|be|were|to be)?[ \"'`(\[]*"
_OF = r"(?:[ _-](?:answer|value|result|output|action|choice|resolution|response|outcome|label|tool|call|is|to be|was))"
_TELLING = (
    rf"(?:(?:gold(?:en)?|ground[ _-]?truth|solution|answer[ _-]?key|hidden[ _-]answer){_OF}*"
    rf"|(?:expected|correct|right|reference|target){_OF}+){_IS}"
)
_SAYING = rf"(?:expected|correct|right|true|should (?:be|have been)|must be)(?: \w+)?{_IS}"
LONG = 40
"""Length of a text that is not repeated by accident."""
SHORT = 6
"""Characters below which an encoded text is found by accident."""


class Secret(NamedTuple):
    """A value that a task hides: its keys from the top, its text, plain and folded, and encodings of that by name."""

    path: tuple[str, ...]
    value: Any
    text: str
    even: str
    forms: dict[str, str]


class Leak(msgspec.Struct, frozen=True):
    """A secret that was shown.

    Attributes:
        how: "strong", "weak" or "inner": under such a label; "stated": after words that call it the truth; "said":
            after words that also occur in ordinary text; "marked": beside a mark on the right choice; "object": a
            whole object; "long"; "random": too random for an accident; or the name of an encoding.
        under: Keys under which it stands.
        needle: Value to look for.
        path: Its path in the hidden data.
    """

    how: str
    under: str
    needle: Any
    path: tuple[str, ...]


def spelled(value: Any) -> str:
    """A scalar as text; a whole number without decimals."""
    if is_number(value) and float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, default=str)


def folded(text: str) -> str:
    """Text without what does not count: case and white space."""
    return " ".join(text.casefold().split())


def same_value(first: Any, second: Any) -> bool:
    """True if two scalars are equal in any spelling; truth values never are."""
    if isinstance(first, bool) or isinstance(second, bool) or first is None or second is None:
        return False
    if isinstance(first, dict | list) or isinstance(second, dict | list):
        return False
    return folded(spelled(first)) == folded(spelled(second)) != ""


def objects(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Dicts with at least two scalars, at every depth."""
    if is_dict(value):
        scalars = {
            key: item for key, item in value.items() if not isinstance(item, dict | list | bool) and item is not None
        }
        if len(scalars) >= 2:
            yield path, scalars
        for key, item in value.items():
            yield from objects(item, (*path, str(key)))
    elif is_list(value):
        for element in value:
            yield from objects(element, path)


def encodings(text: str) -> dict[str, str]:
    """Returns the encoded forms of a text by name; empty for a short text."""
    if len(text) < SHORT:
        return {}
    raw = text.encode()
    found = {
        "base64": base64.b64encode(raw).decode().rstrip("="),
        "base64 (URL)": base64.urlsafe_b64encode(raw).decode().rstrip("="),
        "base32": base64.b32encode(raw).decode().rstrip("="), "hex": raw.hex(),
    }  # fmt: skip
    if any(letter.isalpha() for letter in text):
        found |= {"rot13": codecs.encode(text, "rot13"), "reversed": text[::-1]}
        found |= {"URL escapes": "".join(f"%{byte:02X}" for byte in raw), "quoting": urllib.parse.quote(text, safe="")}
    return {name: form for name, form in found.items() if form not in (text, "") and form.casefold() != text.casefold()}


def is_random(text: str) -> bool:
    """True if a text is a random key: ten letters and digits or more in one word, well mixed."""
    is_mixed = bool(re.search(r"\d", text) and re.search(r"[A-Za-z]", text))
    is_stamp = bool(re.match(r"^\d{4}-\d\d-\d\d", text)) or "@" in text
    return " " not in text and len(re.sub(r"[^A-Za-z0-9]", "", text)) >= 10 and is_mixed and not is_stamp


class SecretIndex(NamedTuple):
    """All that one task hides, made ready to be looked for: its scalars and its objects."""

    secrets: tuple[Secret, ...]
    wholes: tuple[tuple[tuple[str, ...], dict[str, Any]], ...]


def sought(hidden: Any) -> SecretIndex:
    """Make what a task hides ready."""
    found: dict[tuple[tuple[str, ...], str], Secret] = {}
    for path, value in leaves(hidden):
        if value is not None and not isinstance(value, bool):
            text = spelled(value)
            found[path, text] = Secret(path, value, text, folded(text), encodings(text))
    return SecretIndex(tuple(found.values()), tuple(objects(hidden)))


def shown(value: Any, hidden: SecretIndex) -> list[Leak]:
    """Every way in which an observation shows what a task hides."""
    found: dict[tuple[str, str, str], Leak] = {}
    for leak in _walk(parsed(value), hidden, under_label="", under=""):
        found.setdefault((leak.how, leak.under, str(leak.needle)), leak)
    return list(found.values())


def label(key: str) -> str:
    """Returns what a field's name reveals about its content: "strong", "weak", "inner" or ""."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower().replace("-", "_").replace(" ", "_")
    for how, words in (("strong", STRONG), ("weak", WEAK), ("inner", INNER)):
        if words.search(name):
            return how
    return ""


_RANK = ("", "inner", "weak", "strong")


def _walk(value: Any, hidden: SecretIndex, *, under_label: str, under: str) -> Iterator[Leak]:
    if is_dict(value):
        yield from _whole(value, hidden, under)
        for key, item in value.items():
            here = max(under_label, label(str(key)), key=_RANK.index)
            yield from _walk(item, hidden, under_label=here, under=f"{under}.{key}".strip("."))
    elif is_list(value):
        yield from _marked(value, hidden, under)
        for element in value:
            yield from _walk(element, hidden, under_label=under_label, under=under)
    else:
        for secret in hidden.secrets if under_label else ():
            if same_value(value, secret.value):
                yield Leak(under_label, under, secret.value, secret.path)
        if isinstance(value, str) and value:
            yield from _in_text(value, hidden, under)
        if is_dict(inner := parsed(value)):  # JSON text in a field.
            yield from _walk(inner, hidden, under_label=under_label, under=under)


def _whole(value: dict[str, Any], hidden: SecretIndex, under: str) -> Iterator[Leak]:
    for path, whole in hidden.wholes:
        if all(key in value and same_value(value[key], item) for key, item in whole.items()):
            yield Leak("object", under, whole, path)


def _marked(rows: list[Any], hidden: SecretIndex, under: str) -> Iterator[Leak]:
    """Choices of which one has a mark, and that is the right one."""
    choices = [row for row in rows if is_dict(row)]
    if len(choices) < 2 or len(choices) != len(rows):
        return
    for key in choices[0]:
        if not RIGHT.search(str(key).lower()):
            continue
        on = [row for row in choices if row.get(key) is True or row.get(key) == 1]
        if len(on) == 1 and all(key in row for row in choices):
            values = [value for name, value in on[0].items() if name != key]
            for secret in hidden.secrets:
                if any(same_value(value, secret.value) for value in values):
                    yield Leak("marked", f"{under}.{key}".strip("."), secret.value, secret.path)


def _in_text(text: str, hidden: SecretIndex, under: str) -> Iterator[Leak]:
    even = folded(text)
    for secret in hidden.secrets:
        if secret.even and secret.even in even:
            yield from (Leak(how, under, secret.value, secret.path) for how in _plain(text, even, secret))
        yield from (Leak(how, under, secret.text, secret.path) for how, form in secret.forms.items() if form in text)


def _plain(text: str, even: str, secret: Secret) -> Iterator[str]:
    """Yields how a text shows a secret: after telling words, at length, or as a random key."""
    own, is_text = secret.text, isinstance(secret.value, str)
    if len(own) <= 200:
        value = re.escape(secret.even) + (r"(?:\.0+)?" if is_number(secret.value) else "") + r"(?!\w|\.\d)"
        if re.search(_TELLING + value, even):
            yield "stated"
        elif re.search(_SAYING + value, even):
            yield "said"
    if is_text and len(own) >= LONG and " " in own.strip():
        yield "long"
    elif is_text and is_random(own) and own in text:
        yield "random"


def shows_it(value: Any, hidden: SecretIndex, want: dict[str, Any]) -> bool:
    """True if an observation shows a certain secret in a certain way."""
    wanted = [want[name] for name in ("how", "under", "needle")]
    return any([leak.how, leak.under, leak.needle] == wanted for leak in shown(value, hidden))


def text_of(value: Any) -> str:
    """All of a value as one text, as it is written."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
