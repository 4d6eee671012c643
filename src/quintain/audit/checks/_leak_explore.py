"""Explores all readable data of a task inside the child: thousands of answers are searched for hidden values.

The walk starts with calls that work and continues with their answers: ids, paths and words become arguments of the next
calls, as for a curious agent. Deliberately wrong calls stand between them, since error messages may leak. Text from the
prompt, from the agent itself or from the visible world is not a secret.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.codes import decoded
from quintain.audit.facts.data import is_dict, is_list, is_number, leaves, parsed
from quintain.audit.facts.generate import Values
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, call, reset
from quintain.audit.kernel.registry import probe_function

from ._leak_reading import COMMANDS, CURIOUS, HIDDEN_FILES, PATHS, hasty, wrong_calls
from ._leak_secrets import folded, sought, spelled, text_of
from ._same_scripts import in_turn

FIRST, READS, CURIOSITY, ERRORS, WRITES, LATE = 60, 200, 130, 90, 48, 30
"""Calls of readers that are known to work; with what was harvested; with what is looked for; wrong ones; wrong ones of
writers; calls of readers behind the oracle's."""
HASTY = 4
"""Answers that are sent one after the other without any work."""
MORE_CURIOUS = (
    "rubric", "score", "grade", "criteria", "system prompt", "expected answer", "admin", "debug", "password",
)  # fmt: skip
HIDDEN_NAMES = (
    ".git/ORIG_HEAD", ".git/HEAD", ".git/FETCH_HEAD", ".git/config", ".git/stash", ".git/refs/stash", ".git/index",
    ".git/refs/heads/main", ".git/refs/heads/solution", ".git/refs/heads/fix", ".git/COMMIT_EDITMSG", "HEAD~1",
    "solution.patch", "fix.patch", "patch.diff", "solution.diff", "CHANGELOG.md", "NOTES.md", "notes.txt", ".cache",
    "debug.log", "app.log", "run.log", "grader.py", "oracle.py", "tests/hidden.txt", "tests/hidden_cases.txt",
    "hidden/cases.txt", "/proc/self/environ", "answer.txt", "~/.bash_history", ".bash_history", "__pycache__",
)  # fmt: skip
"""Further files in which a truth lies about."""
ENDINGS = (".orig", "~", ".bak", ".old", ".rej", ".new", ".fixed", ".solution", ".expected", ".patch", ".swp", ".gold")
"""File name endings of backup copies."""
SEARCHED = re.compile(r"(?:^|_)(?:query|q|text|term|terms|words?|search|pattern|prefix|keyword|filter|topic|question)$")
GRADERS = re.compile(r"\b(?:rubric|answers?|gold|expected|solutions?|grader|truth|labels)\.(?:json|txt|csv|ya?ml|md)\b")
"""Files that hold a truth by their name; a prompt that speaks of one makes it data."""
_FILE = re.compile(r"[\w./-]*\.[a-z]{2,4}")
LEAST = 4
"""Characters of a bare value below which it may stand somewhere by accident."""
WHOLE = 40
"""Characters of a text that is a piece of work, and no fact that stands somewhere."""
STRUCTURED = 12
"""Length of a text of several words that is not repeated by accident."""


class Hit(msgspec.Struct, frozen=True):
    """A hidden value that could be read.

    Attributes:
        code: Name of its encoding; empty for plain text.
        why: "named": the answer names a grader's file; "error": an error message contained it; "asked": a word that
            only a search for the answer uses returned it; "beyond": it stands nowhere in the world that the tool else
            shows; "whole": it is the whole content of an unmentioned place, and what the oracle hands in; "after": it
            is shown only after another action.
        needle, path: The hidden value's text, folded, and its path in the hidden data.
        late, then: Number of oracle ops before it; ops between those and the op that showed it.
    """

    code: str
    why: str
    needle: str
    path: tuple[str, ...]
    op: Op
    late: int = 0
    then: tuple[Op, ...] = ()


def flat(value: Any) -> str:
    """All scalars of a value and its keys, folded, one a line: for asking whether something stands in it."""
    lines = [folded(spelled(leaf)) for _, leaf in leaves(value)]
    keys = [folded(key) for key in dict.fromkeys(key for path, _ in leaves(value) for key in path)]
    return "\n".join((*lines, *keys))


def is_graders(text: str) -> bool:
    """True if a text begins with the name of a grader's file, and is no list of files."""
    first, *lines = [line.strip() for line in text.casefold().splitlines()] or [""]
    return bool(GRADERS.search(first) and _FILE.fullmatch(first)) and not any(map(_FILE.fullmatch, lines))


def stands_in(needle: str, text: str) -> bool:
    """True if a text contains a value by itself, and not as a part of a longer word or number."""
    start = 0
    while (at := text.find(needle, start)) >= 0:
        before, behind = text[at - 1 : at], text[at + len(needle) : at + len(needle) + 2]
        inside = (needle[0].isalnum() and before.isalnum()) or (needle[-1].isalnum() and behind[:1].isalnum())
        decimal = needle[-1].isdigit() and behind[:1] == "." and behind[1:].isdigit()
        if not inside and not decimal and not (needle[0].isdigit() and before in (".", ",")):
            return True
        start = at + 1
    return False


def evened(text: str) -> str:
    """Folded, and numbers without marks between thousands."""
    return re.sub(r"(?<=\d)[,'_ \u2009\u202f](?=\d{3}(?!\d))", "", folded(text))


def read_text(seen: OpResult) -> str:
    """Returns the result as the agent reads it: strings as they are, not as JSON writes them."""
    if seen.how:
        return seen.raised.partition(":")[2]
    value = parsed(seen.value)
    return value if isinstance(value, str) else "\n".join(spelled(leaf) for _, leaf in leaves(value))


def finds(text: str, needle: str) -> str | None:
    """Returns how a text shows a value: "" for plain, the name of a code, or None if it does not."""
    even = evened(text)
    if stands_in(needle, even) or stands_in(needle, folded(text)):
        return ""
    return next((name for name, plain in decoded(text) if _behind(name, plain, needle)), None)


TURNED = frozenset(("rot13", "rot47", "backwards", "words backwards", "letters apart", "first letters", "last letters"))


def _behind(name: str, plain: str, needle: str) -> bool:
    least = 6 if name.partition(" in ")[0] in TURNED else 3 if name != "words for digits" else 2
    short = needle.replace(" ", "") if name in ("letters apart", "first letters", "last letters") else needle
    return len(short) >= least and len(set(short)) >= 3 and stands_in(short, evened(plain))


class Walker:
    """One task's walk.

    Args:
        player: Plays.
        asked: task, tools (name, properties), bases (calls that work, by tool), writers, oracle (ops), chunk (calls
            that one episode bears), share (of the usual number of calls), declared (what the tools say at first).
    """

    def __init__(self, player: Player, asked: dict[str, Any]) -> None:
        self.player, self.asked, self.task = player, asked, str(asked["task"])
        self.oracle = msgspec.convert(asked["oracle"], list[Op])
        self.tools: list[dict[str, Any]] = asked["tools"]
        self.writers, self.bases, self.chunk = set(asked["writers"]), asked["bases"], int(asked["chunk"])
        self.offers = player.adapter("a").offers
        self.values = Values()
        self.ids: dict[str, None] = {}
        self.words: dict[str, None] = {}
        self.played: set[str] = set()
        self.fresh = 0
        self.honest: set[str] = set()
        self.in_world: dict[str, list[int]] = {}
        self.hits: list[Hit] = []

    def walk(self) -> list[Hit]:
        hidden = sought(self.player.do(Op("hidden", name=self.task)).value)
        told = [self._begin(), *([self.player.do(Op("prompt", name=self.task))] if "prompt" in self.offers else [])]
        self.prompt = evened("\n".join(map(read_text, told)))
        self.world = flat(self.player.do(Op("state")).value) if "state" in self.offers else ""
        known = (self.prompt, self.world, str(self.asked["declared"]))
        texts = {secret.even: secret.path for secret in hidden.secrets if len(secret.even) >= 3}
        self.needles = {text: path for text, path in texts.items() if not any(stands_in(text, each) for each in known)}
        if not self.needles:
            return []
        self._take(self.prompt)
        self._solve()
        self._reads(list(self._seeds()), FIRST, is_honest=True)
        for _ in range(2):
            self._reads(list(self._harvested()), READS // 2, is_honest=True)
        self._reads(list(self._curious()), CURIOSITY, is_honest=False)
        self._wrong()
        self._after()
        return [
            hit
            for hit in self.hits
            if hit.code or hit.why in ("named", "beyond", "whole") or hit.needle not in self.honest
        ]

    def _share(self, most: int) -> int:
        return int(most * float(self.asked["share"]))

    # --- playing ---

    def _begin(self) -> OpResult:
        self.fresh = 0
        return self.player.do(reset(self.task))

    def _reads(self, ops: Sequence[Op], most: int, *, is_honest: bool) -> None:
        """Play so many of these, each tool in its turn."""
        new = {f"{op.name} {json.dumps(op.value, sort_keys=True, default=str)}": op for op in reversed(ops)}
        fresh = [op for key, op in reversed(new.items()) if key not in self.played]
        self.played.update(new)
        for op in in_turn(fresh, lambda op: op.name)[: self._share(most)]:
            self._read(op, is_honest=is_honest)

    def _read(self, op: Op, *, is_honest: bool) -> None:
        if self.fresh >= self.chunk:
            self._begin()
        self.fresh += 1
        seen = self.player.do(op)
        if not seen.is_error and is_honest:
            self._take(parsed(seen.value), op.name)
        self._look(op, seen, is_honest=is_honest)

    def _look(
        self, op: Op, seen: OpResult, *, is_honest: bool, is_error: bool = True, late: int = 0, spoken: str = ""
    ) -> None:
        text, is_error = read_text(seen), is_error and seen.is_error
        if not text or seen.how == "crashed":
            return
        said = evened(f"{spoken}\n{flat(op.value)}")
        if not is_error and self.world:
            self._cover(op.name, text)
        codes: list[tuple[str, str]] | None = None
        even, bare = evened(text), folded(text)
        is_named = is_graders(text) and not GRADERS.search(f"{self.prompt}\n{said}")
        for needle, path in self.needles.items():
            if needle in said:
                continue
            if stands_in(needle, even) or stands_in(needle, bare):
                is_whole = needle in (even.strip(), bare.strip())
                why = self._why(op, needle, is_error=is_error, is_honest=is_honest, is_whole=is_whole)
                if is_named and not is_error and not late and len(needle) >= STRUCTURED and " " in needle:
                    why = "named"
                if why:
                    self.hits.append(Hit("", why, needle, path, op, late))
                continue
            codes = list(decoded(text)) if codes is None else codes
            code = next((name for name, plain in codes if _behind(name, plain, needle)), "")
            if code:
                self.hits.append(Hit(code, "code", needle, path, op, late))

    def _why(self, op: Op, needle: str, *, is_error: bool, is_honest: bool, is_whole: bool) -> str:
        if is_error:
            return "error" if len(needle) >= LEAST else ""
        if not is_honest:
            return "asked" if len(needle) >= LEAST else ""
        if is_whole and not self.world and needle not in self.honest and self._is_handed_in(op, needle):
            return "whole"
        self.honest.add(needle)
        there, count = self.in_world.get(op.name, [0, 0])
        is_said = len(needle) >= STRUCTURED and " " in needle and re.search(r"[^\W\d_]{3}", needle)
        return "beyond" if is_said and there >= 3 and there >= 0.5 * count else ""

    def _is_handed_in(self, op: Op, needle: str) -> bool:
        """True if a text is what the oracle hands in, read where neither oracle nor task looks."""
        given = {evened(spelled(leaf)).strip() for each in self.oracle if each != op for _, leaf in leaves(each.value)}
        places = [evened(spelled(leaf)) for _, leaf in leaves(op.value)]
        spoken = any(stands_in(place, self.prompt) or place in given for place in places if place)
        return len(needle) >= WHOLE and needle in given and bool(places) and not spoken

    def _cover(self, tool: str, text: str) -> None:
        """Count how much of what a tool answers stands in the world that we can see."""
        counts = self.in_world.setdefault(tool, [0, 0])
        for line in text.splitlines()[:40]:
            even = folded(line)
            if len(even) >= STRUCTURED:
                counts[0] += even in self.world or even.partition(": ")[2] in self.world
                counts[1] += 1

    # --- what is called ---

    def _take(self, value: Any, name: str = "") -> None:
        self.values.take(value, name)
        for token in re.findall(r"[\w.\-/~@]{3,60}", text_of(value)[:20_000]):
            bare = token.strip(".-/") if not token.startswith((".", "/")) else token.rstrip(".-")
            pool = self.ids if re.search(r"[\d/._-]", bare) else self.words
            if len(bare) >= 3 and len(pool) < 120:
                pool.setdefault(bare)

    def _solve(self) -> None:
        """The oracle's own calls: what they show by right is data; and what readers say just before its last call."""
        self._begin()
        spoken = ""
        for place, op in enumerate(self.oracle[:-1]):
            seen = self.player.do(op)
            spoken += f"\n{flat(op.value)}"
            if op.do == "call" and not seen.is_error:
                even = evened(read_text(seen))
                self.honest |= {needle for needle in self.needles if stands_in(needle, even)}
                self._take(parsed(seen.value), op.name)
                self._look(op, seen, is_honest=True, late=place, spoken=spoken)
        if self.oracle[:-1] and len(self.oracle) + LATE < self.chunk:
            for op in list(self._seeds())[:LATE]:
                self._look(op, self.player.do(op), is_honest=True, late=len(self.oracle) - 1, spoken=spoken)
        self._begin()

    def _seeds(self) -> Iterator[Op]:
        for name in (tool["name"] for tool in self.tools if tool["name"] not in self.writers):
            yield from (call(name, base) for base in self.bases.get(name, ())[:4])

    def _harvested(self) -> Iterator[Op]:
        for tool, base, name, schema in self._parameters():
            for value in self._fitting(name, schema):
                yield call(tool, {**base, name: value})

    def _fitting(self, name: str, schema: dict[str, Any]) -> list[Any]:
        if is_list(schema.get("enum")):
            return list(schema["enum"])[:12]
        kind = schema.get("type", "string")
        if kind in ("integer", "number"):
            ends = [schema[key] for key in ("minimum", "maximum") if is_number(schema.get(key))]
            return [*ends, *[value for value in self.values.of(name) if is_number(value)][:6]]
        if kind == "boolean":
            return [True, False]
        if kind != "string":
            return []
        seen = [value for value in self.values.of(name) if isinstance(value, str)]
        ids, words = [*self.ids][:40], [*self.words][:40] if SEARCHED.search(name.lower()) else []
        return list(dict.fromkeys([*seen[:15], *ids, *words]))

    def _curious(self) -> Iterator[Op]:
        files = [identifier for identifier in self.ids if re.search(r"\w[./]\w", identifier)][:8]
        left = [file + end for file in files for end in ENDINGS]
        left += [file.replace(stem, f"hidden_{stem}") for file in files if (stem := file.rpartition("/")[2])]
        left += [file.rpartition("/")[0] + "/hidden.txt" for file in files if "/" in file]
        for tool, base, name, schema in self._parameters():
            if schema.get("type", "string") != "string" or schema.get("enum"):
                continue
            if PATHS.search(name.lower()):
                for path in (*HIDDEN_NAMES, *left, *HIDDEN_FILES):
                    yield call(tool, {**base, name: path})
            elif not COMMANDS.search(name.lower()):
                yield from (call(tool, {**base, name: word}) for word in (*CURIOUS, *MORE_CURIOUS))

    def _parameters(self) -> Iterator[tuple[str, dict[str, Any], str, dict[str, Any]]]:
        """Yields (tool, arguments that work, parameter, its schema) for the reading tools.

        Of another thing there need not be what an optional argument asks for, such as a second page.
        """
        for tool in self.tools:
            # No call of a tool may have worked yet; with what was read since, one may.
            bases: Sequence[Any] = self.bases.get(tool["name"], ()) or ([{}] if len(tool["required"]) < 2 else ())
            for name, schema in list(tool["properties"].items())[:6]:
                if tool["name"] not in self.writers and bases and is_dict(schema):
                    yield (
                        tool["name"], {key: bases[0][key] for key in bases[0] if key in tool["required"]}, name, schema,
                    )  # fmt: skip

    def _wrong(self) -> None:
        """Calls that are wrong in one place, of every tool; those of writers each in an episode of its own."""
        wrong: list[Op] = []
        for tool in self.tools:
            own = [op.value for op in self.oracle if op.name == tool["name"] and is_dict(op.value)]
            wrong += wrong_calls(tool, [*own, *self.bases.get(tool["name"], ())])
        self._reads([op for op in wrong if op.name not in self.writers], ERRORS, is_honest=False)
        acts = in_turn((op for op in wrong if op.name in self.writers), lambda op: op.name)
        for op in acts[: self._share(WRITES)]:
            self._begin()
            self._look(op, self.player.do(op), is_honest=False)

    def _after(self) -> None:
        """Collects hits shown only after hasty answers or after failed calls."""
        if not self.oracle:
            return
        wrong = [op for tool in self.tools[:12] for op in itertools.islice(wrong_calls(tool, ()), 1)]
        reads = list(self._seeds())[: max(0, min(self._share(LATE), self.chunk - 2 * HASTY))]
        for first in ([hasty(self.oracle[-1])] * HASTY, [op for op in wrong if op.name not in self.writers][:HASTY]):
            self._begin()
            for place, op in enumerate((*first, *(reads if first else ()))):
                count = len(self.hits)
                self._look(op, self.player.do(op), is_error=False, is_honest=False)
                self.hits[count:] = [
                    msgspec.structs.replace(
                        hit, then=tuple(first[:place]), why="after" if hit.why == "asked" else hit.why
                    )
                    for hit in self.hits[count:]
                ]


@probe_function
def explore(player: Player, _on: str, value: dict[str, Any]) -> Any:
    """The hits of a walk through a task, as plain data."""
    return msgspec.to_builtins(Walker(player, value).walk())
