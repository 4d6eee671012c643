"""Two graders in one: sets, whose order and repetitions are free, and outputs of programs, compared line by line."""

import math
from typing import Any

import quintain as qn
from quintain.tasks import Question

SET = (
    "Answer with the numbers alone, separated by commas. Their order does not matter, and a number that is "
    "written twice counts once."
)
OUTPUT = (
    "Answer with exactly what it prints, and nothing else, not even a fence. Spaces at the end of a line and empty "
    "lines before the first and after the last line are ignored; everything else counts, capitals too."
)


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def primes(low: int, high: int) -> list[int]:
    return [n for n in range(max(low, 2), high + 1) if all(n % d for d in range(2, math.isqrt(n) + 1))]


def squares(modulus: int) -> list[int]:
    return sorted({n * n % modulus for n in range(modulus)})


SETS: list[tuple[str, list[int]]] = [
    ("Which whole numbers divide 84?", divisors(84)),
    ("Which whole numbers divide 135?", divisors(135)),
    ("Which primes lie from 40 to 75?", primes(40, 75)),
    ("Which primes lie from 90 to 120?", primes(90, 120)),
    ("Which remainders do squares of whole numbers leave on division by 13?", squares(13)),
    ("Which remainders do squares of whole numbers leave on division by 16?", squares(16)),
]
PROGRAMS: list[tuple[str, str]] = [
    ("for n in range(3):\n    print('#' * n + str(n))", "0\n#1\n##2"),
    ("words = 'Tea and Toast'.split()\nprint('-'.join(word[::-1] for word in words))", "aeT-dna-tsaoT"),
    ("print([n ** 2 for n in range(6) if n % 2])\nprint(sum(range(6)))", "[1, 9, 25]\n15"),
    ("d = {}\nfor c in 'banana':\n    d[c] = d.get(c, 0) + 1\nprint(d)", "{'b': 1, 'a': 3, 'n': 2}"),
    ("a, b = 1, 1\nwhile b < 30:\n    a, b = b, a + b\nprint(a)\nprint(b)", "21\n34"),
    ("print(f'{7 / 2:.2f}')\nprint(-7 // 2, -7 % 3)", "3.50\n-4 2"),
]


def lines(text: str) -> list[str]:
    """Returns the lines without spaces at their ends, and without empty lines at both ends."""
    found = [line.rstrip() for line in text.split("\n")]
    while found and not found[0]:
        del found[0]
    while found and not found[-1]:
        del found[-1]
    return found


def numbers(text: str) -> set[int] | None:
    """Returns the set that a list of whole numbers names; None if it is not such a list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        return None
    return {int(part) for part in parts}


@qn.reward
def right(view: qn.EpisodeView[Question]) -> qn.Score:
    truth: dict[str, Any] = view.task.truth
    if truth["kind"] == "set":
        named = numbers(view.answer)
        return qn.Score(float(named == set(truth["items"])), f"named {sorted(named) if named else named}")
    shown = lines(view.answer)
    return qn.Score(float(shown == truth["lines"]), f"shown {shown}")


def tasks(split: str) -> list[qn.Task[Question]]:
    made = [
        qn.Task(
            id=f"{split}-set-{n}",
            prompt=f"{asked} {SET}",
            start=Question(),
            truth={"kind": "set", "items": items},
            solution=(),
            answer=", ".join(map(str, items)),
            tags={"kind": "set"},
        )
        for n, (asked, items) in enumerate(SETS, 1)
    ]
    for n, (source, output) in enumerate(PROGRAMS, 1):
        made.append(
            qn.Task(
                id=f"{split}-output-{n}",
                prompt=f"What does this Python program print? {OUTPUT}\n\n{source}",
                start=Question(),
                truth={"kind": "output", "lines": output.split("\n")},
                solution=(),
                answer=output,
                tags={"kind": "output"},
            )
        )
    return made


env = qn.Environment(
    "listing", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(right), state=Question, splits=("test",)
)
