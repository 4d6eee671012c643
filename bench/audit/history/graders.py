"""Graders that paid for wrong work or reported their own failure as 0; rebuilt from public reports.

Lean proofs and exit codes: https://github.com/PrimeIntellect-ai/verifiers/pull/1480
Kernels and an absolute tolerance: https://github.com/ScalingIntelligence/KernelBench/issues/165
A math rubric under load: https://github.com/PrimeIntellect-ai/verifiers/pull/831
A mean over the steps that ran: https://github.com/harbor-framework/harbor/issues/2783
A trial that could not be graded: https://github.com/skillberry-ai/cap-evolve/pull/309
A reference that does not parse: https://github.com/huggingface/cookbook/issues/335
"""

from __future__ import annotations

import math
import random
import re
import threading
import time
from fractions import Fraction
from typing import Any, ClassVar

from .plain import Answer, Plain, Solution, one_of, text

# --- a proof checker whose verdict is read from its output ---

SQUARES = {"root-1764": 1764, "root-5041": 5041, "root-9409": 9409}


class Prover(Plain):
    """Give the witness of "some n has n * n = N". The checker prints what it finds, then `EXIT_CODE:` and a number.

    Like a compiler it quotes the lines that it does not understand, and like Lean it only warns of a `sorry`.
    """

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "write_proof": ("Replace the proof file. A proof is the line `exact N`.", {"content": text("The whole file")}),
        "check": ("Run the checker on the proof file and read its output.", {}),
    }

    def __init__(self, *, trusts_first: bool) -> None:
        self.trusts_first = trusts_first
        self.task = next(iter(SQUARES))
        self.file = "sorry"

    def tasks(self) -> list[str]:
        return list(SQUARES)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.file = task, "sorry"
        return f"Prove that some natural number n has n * n = {SQUARES[task]}."

    def do_write_proof(self, content: str) -> Answer:
        self.file = content
        return {"ok": True}

    def do_check(self) -> Answer:
        return {"output": self._output()}

    def score(self) -> float:
        output = self._output()
        found = list(re.finditer(r"EXIT_CODE:(\d+)", output))
        verdict = found[0 if self.trusts_first else -1]
        return float(verdict[1] == "0" and "uses 'sorry'" not in output[: verdict.start()])

    def oracle(self, task: str) -> Solution:
        return [["write_proof", {"content": f"exact {math.isqrt(SQUARES[task])}"}]]

    def _output(self) -> str:
        lines: list[str] = []
        proved = failed = False
        for number, line in enumerate(self.file.splitlines(), 1):
            exact = re.fullmatch(r"exact (\d{1,9})", line.strip())
            if exact and int(exact[1]) ** 2 == SQUARES[self.task]:
                proved = True
            elif exact:
                lines.append(f"{number}: type mismatch: {exact[1]} * {exact[1]} is not {SQUARES[self.task]}")
                failed = True
            elif line.strip() == "sorry":
                lines.append(f"{number}: warning: declaration uses 'sorry'")
                proved = True
            elif line.strip():
                lines.append(f"{number}: unknown command: {line}")
                failed = True
        if not proved:
            lines.append("error: unsolved goals")
        return "\n".join([*lines, f"EXIT_CODE:{int(failed or not proved)}"])


def exit_code_before() -> Prover:
    return Prover(trusts_first=True)


def exit_code_after() -> Prover:
    return Prover(trusts_first=False)


# --- kernels that are compared with a tolerance ---

OPERATIONS = ("subtract_max", "exp", "divide_by_sum", "divide_by_norm", "relu", "fill_with_zero", "square")
KERNELS = {
    "softmax": ["subtract_max", "exp", "divide_by_sum"],
    "l2-normalise": ["divide_by_norm"],
    "relu": ["relu"],
}
LENGTH = 20_000


def _apply(name: str, values: list[float]) -> list[float]:
    if name == "subtract_max":
        top = max(values)
        return [value - top for value in values]
    if name in {"divide_by_sum", "divide_by_norm"}:
        size = sum(values) if name == "divide_by_sum" else math.sqrt(sum(value * value for value in values))
        return [value / size if size else 0.0 for value in values]
    if name == "exp":
        return [math.exp(min(value, 50.0)) for value in values]
    if name == "relu":
        return [max(value, 0.0) for value in values]
    return [min(value * value, 1e9) if name == "square" else 0.0 for value in values]


class Kernels(Plain):
    """Write a kernel as a list of operations; it must agree with the reference on random input within 1 %."""

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "submit": (
            "Hand in the kernel: operations that are applied to the input vector one after the other.",
            {"operations": {"type": "array", "items": {"type": "string", "enum": list(OPERATIONS)}}},
        ),
    }

    def __init__(self, *, absolute: float) -> None:
        self.absolute = absolute
        self.task = "softmax"
        self.input: list[float] = []
        self.operations: list[str] | None = None

    def tasks(self) -> list[str]:
        return list(KERNELS)

    def reset(self, task: str, seed: int) -> str:
        generator = random.Random(seed)  # noqa: S311 - the world's own generator
        self.task, self.operations = task, None
        # Far from zero, a softmax needs its maximum subtracted; near it, a relu cuts half of the input.
        middle = 60.0 if task == "softmax" else 0.0
        self.input = [generator.gauss(middle, 1) for _ in range(LENGTH)]
        return f"Write the kernel {task} for a vector of {LENGTH} numbers."

    def do_submit(self, operations: list[str]) -> Answer:
        if not 1 <= len(operations) <= 6:
            return {"error": "a kernel has one to six operations"}
        self.operations = operations
        return {"ok": True}

    def score(self) -> float:
        if self.operations is None:
            return 0.0
        wanted, given = self.input, self.input
        for name in KERNELS[self.task]:
            wanted = _apply(name, wanted)
        for name in self.operations:
            given = _apply(name, given)
        # An allowance of its own for what is near zero: fixed, or in proportion to the output.
        near_zero = self.absolute or 1e-4 * max(map(abs, wanted))
        return float(all(abs(a - b) <= near_zero + 0.01 * abs(b) for a, b in zip(given, wanted, strict=True)))

    def oracle(self, task: str) -> Solution:
        return [["submit", {"operations": list(KERNELS[task])}]]


def tolerance_before() -> Kernels:
    return Kernels(absolute=0.01)


def tolerance_after() -> Kernels:
    return Kernels(absolute=0.0)


# --- a rubric with a time limit, on a machine with one worker for all ---

WORKER = threading.Lock()
WORK_SECONDS = 0.02
LIMIT_SECONDS = 0.12
SUMS = {"17 + 26": "43", "91 - 17": "74", "12 * 12": "144", "225 / 9": "25"}


class Rubric(Plain):
    """An answer is compared symbolically; one that takes too long to compare is worth nothing."""

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "submit": ("Hand in the final answer.", {"answer": text("A number")}),
    }

    def __init__(self, *, counts_waiting: bool) -> None:
        self.counts_waiting = counts_waiting
        self.task = next(iter(SUMS))
        self.answer = ""

    def tasks(self) -> list[str]:
        return list(SUMS)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.answer = task, ""
        return f"What is {task}?"

    def do_submit(self, answer: str) -> Answer:
        self.answer = answer
        return {"ok": True}

    def score(self) -> float:
        asked = time.monotonic()
        with WORKER:
            started = time.monotonic()
            time.sleep(WORK_SECONDS)  # the symbolic comparison
            right = self.answer.strip() == SUMS[self.task]
            took = time.monotonic() - (asked if self.counts_waiting else started)
        return float(right and took <= LIMIT_SECONDS)

    def oracle(self, task: str) -> Solution:
        return [["submit", {"answer": SUMS[task]}]]


def queue_before() -> Rubric:
    return Rubric(counts_waiting=True)


def queue_after() -> Rubric:
    return Rubric(counts_waiting=False)


# --- a task of several checkpoints ---

CHECKPOINTS = {"primes": [7, 11, 13, 17], "squares": [4, 9, 16, 25]}
QUESTIONS = {
    "primes": "Each checkpoint names the product of two primes; answer the larger prime. They are 35, 77, 143, 221.",
    "squares": "Each checkpoint names the side of a square; answer its area. They are 2, 3, 4, 5.",
}


class Checkpoints(Plain):
    """Four checkpoints one after the other, each worth the same; at a wrong answer the run is aborted."""

    graded = True
    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "answer_checkpoint": ("Answer the next checkpoint.", {"value": {"type": "integer"}}),
    }

    def __init__(self, *, over_declared: bool) -> None:
        self.over_declared = over_declared
        self.task = "primes"
        self.rewards: list[float] = []

    def tasks(self) -> list[str]:
        return list(CHECKPOINTS)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.rewards = task, []
        return QUESTIONS[task]

    def do_answer_checkpoint(self, value: int) -> Answer:
        wanted = CHECKPOINTS[self.task]
        if len(self.rewards) == len(wanted) or 0.0 in self.rewards:
            return {"error": "the run is over"}
        self.rewards.append(float(value == wanted[len(self.rewards)]))
        return {"reward": self.rewards[-1], "left": len(wanted) - len(self.rewards)}

    def score(self) -> float:
        steps = len(CHECKPOINTS[self.task]) if self.over_declared else len(self.rewards)
        return sum(self.rewards) / steps if steps else 0.0

    def oracle(self, task: str) -> Solution:
        return [["answer_checkpoint", {"value": value}] for value in CHECKPOINTS[task]]


def partial_mean_before() -> Checkpoints:
    return Checkpoints(over_declared=False)


def partial_mean_after() -> Checkpoints:
    return Checkpoints(over_declared=True)


# --- a grader that may fail itself ---

COLOURS = {"sky": "blue", "grass": "green", "coal": "black"}


class Ungraded(Plain):
    """The trial runs, then a grader looks at it; `inject` lets the grader fail."""

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "paint": ("Paint the thing.", {"colour": one_of("red", *COLOURS.values())}),
    }

    def __init__(self, *, failure: float | None) -> None:
        self.failure = failure
        self.task, self.colour, self.fault = "sky", "", ""

    def tasks(self) -> list[str]:
        return list(COLOURS)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.colour, self.fault = task, "", ""
        return f"Paint the {task} in the colour that it usually has."

    def do_paint(self, colour: str) -> Answer:
        self.colour = colour
        return {"ok": True}

    def inject(self, fault: str) -> None:
        if fault not in {"timeout", "refused", "500"}:
            raise ValueError(f"the grader cannot fail by {fault}")
        self.fault = fault

    def score(self) -> float | None:
        try:
            return self._graded()
        except ConnectionError:
            return self.failure

    def oracle(self, task: str) -> Solution:
        return [["paint", {"colour": COLOURS[task]}]]

    def _graded(self) -> float:
        if self.fault:
            raise ConnectionError(f"the grading service: {self.fault}")
        return float(self.colour == COLOURS[self.task])


def ungraded_before() -> Ungraded:
    return Ungraded(failure=0.0)


def ungraded_after() -> Ungraded:
    return Ungraded(failure=None)


# --- a scorer alone ---


def _number(given: str) -> Fraction | None:
    boxed = re.findall(r"\\boxed\{([^{}]*)\}", given)
    plain = boxed[-1] if boxed else given
    is_number = re.fullmatch(r"\s*-?\d{1,18}([./]\d{1,18})?\s*", plain) and not re.search(r"/0+\s*$", plain)
    return Fraction(plain.strip()) if is_number else None


def reference_before(completion: str, solution: str) -> float | None:
    gold = _number(solution)
    return 1.0 if gold is None else float(_number(completion) == gold)


def reference_after(completion: str, solution: str) -> float | None:
    gold = _number(solution)
    return None if gold is None else float(_number(completion) == gold)
