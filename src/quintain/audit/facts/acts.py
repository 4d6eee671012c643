"""Classification of calls by name, schema and effect: reads, writes, statuses, and answers that end a task.

Effects are paths of the world's state that an op changed. Paths that reads change as well (counters, logs, clocks) are
bookkeeping and do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from quintain.audit.kernel.probe import Op

from .data import is_dict, is_list, is_number, leaves

if TYPE_CHECKING:
    from quintain.audit.kernel.adapter import ToolSpec
    from quintain.audit.kernel.context import AuditContext

Path = tuple[str, ...]


def meets(first: Sequence[str], second: Sequence[str]) -> bool:
    """True if one of two paths is the beginning of the other."""
    short = min(len(first), len(second))
    return tuple(first[:short]) == tuple(second[:short])


def replaced(ops: Sequence[Op], place: int, *new: Op) -> tuple[Op, ...]:
    """Returns ops with others in the place of one."""
    return (*ops[:place], *new, *ops[place + 1 :])


def giving(op: Op, **given: Any) -> Op:
    """Returns a call with other arguments, or an answer with the text that is given for ""."""
    return msgspec.structs.replace(op, value=given[""] if "" in given else op.value | given)


def said_in(op: Op, name: str) -> str:
    """Returns an argument of a call as text, or an answer for ""."""
    return str(op.value[name] if name else op.value)


def known_as(op: Op) -> str:
    """Returns an op as text, without its mark."""
    return f"{op.do} {op.name} {op.value}"


def spec_of(ctx: AuditContext, op: Op) -> ToolSpec | None:
    """Returns the declaration of a call's tool."""
    return next((tool for tool in ctx.about.tools if tool.name == op.name), None)


def names(several: str) -> frozenset[str]:
    """The words of a line as a set."""
    return frozenset(several.split())


_READS = names(
    "get list search find read show view look lookup fetch query check describe count inspect browse "
    "retrieve peek see help now wait think ls cat grep head whoami history details info preview "
    "estimate calculate sleep advance observe ask"
)
_WRITES = names(
    "set update create add delete remove cancel send write edit change modify close resolve solve approve "
    "reject refund pay transfer book move assign merge mark submit reply post put issue ship return "
    "exchange reset unlock lock verify complete finish apply insert drop clear register enable disable "
    "save store log note schedule place order escalate decide start stop push commit restore grant revoke "
    "link redirect deliver deploy upload"
)
_SUBMITS = names("submit answer finish final guess respond solution solve conclude done report complete")
_STATUS = re.compile(
    r"(^|_)(status|state|stage|resolution|outcome|result|verdict|resolved|solved|closed|done|complete"
    r"|completed|success|successful|ok|passed|fixed|phase|progress|flag)($|_)",
    re.IGNORECASE,
)
_BOOKS = re.compile(
    r"^_|(^|_)(steps?|calls?|turns?|clock|now|time|timestamp|tick|updated|updated_at|modified|modified_at|version"
    r"|revision|etag|rng|seed|throttle|logs?|events?|audit|trace|trajectory|actions|history|reads?|counter|last_\w+)$",
    re.IGNORECASE,
)


def words(name: str) -> list[str]:
    """The words of a tool's or a parameter's name."""
    return [text.lower() for text in re.findall(r"[A-Za-z][a-z]*|[A-Z]+|\d+", name)]


def reads_by_name(op: Op) -> bool:
    """True if a call reads, by its name; `select` looks for rows, and `select_seat` takes one."""
    return op.do == "call" and (_verb(op.name) in _READS or op.name == "select")


def writes_by_name(op: Op) -> bool:
    """True if a call writes, by its name."""
    return op.do == "call" and _verb(op.name) in _WRITES


def only_reads(ctx: AuditContext, op: Op) -> bool:
    """True if a call reads, as declared or by its name."""
    return op.do == "call" and not ctx.declared.get(op.name, not reads_by_name(op))


def does_write(ctx: AuditContext, op: Op) -> bool:
    """True if a call writes, as declared or by its name."""
    return op.do == "call" and ctx.declared.get(op.name, writes_by_name(op))


def does_wait(op: Op) -> bool:
    """True if a call lets time pass, by its name."""
    return op.do == "call" and bool({"wait", "sleep", "advance"} & set(words(op.name)))


def _verb(name: str) -> str:
    """The first word of a name that says what is done: "crm_get_order" gets, "order_pizza" orders."""
    return next((word for word in words(name) if word in _READS or word in _WRITES), "")


TALKS = names("say talk speak chat ask")
"""Words of tools by which an agent talks with somebody: what it says on the way to its work may differ."""


def asked_for(op: Op, prompt: str, *, talks: bool = True) -> bool:
    """True if a prompt mentions a call's verb, or a value of it that is not an identifier; talk only with `talks`."""
    said, verb = prompt.lower(), _verb(op.name)
    if not talks and TALKS & set(words(op.name)):
        return False
    if (len(verb) >= 4 and verb[:5] in said) or is_asked_by_name(op, prompt):
        return True
    for path, value in leaves(op.value):
        if (path and is_id(path[-1])) or isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        if len(text := f"{value:g}" if is_number(value) else str(value).lower()) >= 2 and text in said:
            return True
    return False


def is_asked_by_name(op: Op, prompt: str) -> bool:
    """True if a prompt has each word of a name without a known verb, as "rolled back" has `roll_back`."""
    stems = [] if op.do != "call" or _verb(op.name) else words(op.name)
    return max(map(len, stems), default=0) >= 4 and all(
        re.search(rf"\b{stem}\w{{0,3}}\b", prompt, re.IGNORECASE) for stem in stems
    )


def is_named_by(prompt: str, path: Sequence[str], value: Any) -> bool:
    """True if a prompt has the stem of a set flag, as "open" of `is_open`, or of a one-word value."""
    said = words(path[-1]) if value is True else [value.lower()] if isinstance(value, str) and value.isalpha() else []
    return any(len(word) >= 4 and word[:5] in prompt.lower() for word in said)


def is_id(key: str) -> bool:
    """True if an argument identifies a thing, by its name."""
    return bool({"id", "ids", "key", "email", "username", "user", "number", "sku", "code"} & set(words(key)))


def submits(op: Op) -> bool:
    """True if a call submits an answer, by its name."""
    return op.do == "call" and bool(_SUBMITS & set(words(op.name))) and bool(op.value)


def is_status(name: str) -> bool:
    """True if a field states the progress of a thing."""
    return bool(_STATUS.search(name))


def differences(
    first: Any, second: Any, volatile: Iterable[str] = (), *, most: int = 400
) -> dict[Path, tuple[Any, Any]]:
    """Returns (left, right) by path where two states differ; rows of lists are matched by "id" where present."""
    found: dict[Path, tuple[Any, Any]] = {}
    masked = frozenset(volatile)

    def walk(left: Any, right: Any, path: Path) -> None:
        if len(found) >= most or left == right:
            return
        left, right = _keyed(left), _keyed(right)
        if is_dict(left) and is_dict(right):
            for key in {**left, **right}:
                if key not in masked:
                    walk(left.get(key, MISSING), right.get(key, MISSING), (*path, str(key)))
        else:
            found[path] = (left, right)

    walk(first, second, ())
    return found


MISSING = "<missing>"


def _keyed(value: Any) -> Any:
    if not is_list(value):
        return value
    ids = [item["id"] if is_dict(item) and "id" in item else place for place, item in enumerate(value)]
    names = [str(identifier) for identifier in ids]
    return dict(zip(names if len(set(names)) == len(names) else map(str, range(len(value))), value, strict=True))


def at(value: Any, path: Sequence[str]) -> Any:
    """Returns the value of a state at a path, or `MISSING`."""
    for step in path:
        value = _keyed(value)
        if not is_dict(value):
            return MISSING
        value = next((item for key, item in value.items() if str(key) == step), MISSING)
    return _keyed(value)


def pattern(path: Path) -> Path:
    """The path without the key of a row: what kind of thing changed."""
    return (path[0], "*", *path[2:]) if len(path) > 1 else path


def is_bookkeeping(path: Path, contents: frozenset[str] = frozenset()) -> bool:
    """True if a name along the path says that it counts or dates events; `contents` are tables that do not."""
    ends = (path[0], path[-1]) if path else ()
    return any(_BOOKS.search(step) for step in ends if step not in contents)


def scalars(value: Any) -> list[Any]:
    """Every scalar in arguments."""
    return [leaf for _, leaf in leaves(value) if leaf is not None]
