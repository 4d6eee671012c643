"""Integer formulas that an agent writes as code, run on a grid of inputs.

Before a formula runs, its syntax tree is compared with the list of allowed nodes, so it can only compute.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

import quintain as qn
from quintain.judges import last_block

LONGEST = 160
RULES = (
    "Write it as one Python expression over x and y. Allowed: x, y, integers, + - * // %, the comparisons == != < <= > "
    ">=, and, or, not, A if C else B, min(...), max(...), abs(...), round brackets. True counts as 1, False as 0. At "
    f"most {LONGEST} characters. Reply with the expression alone, or in a fenced block. It is right if it gives the "
    "right number for every x from 0 to 120 and every y from 1 to 12."
)
NODES = (
    ast.Constant, ast.Name, ast.Load, ast.Call, ast.IfExp, ast.UnaryOp, ast.USub, ast.UAdd, ast.Not, ast.BinOp, ast.Add,
    ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip
FUNCTIONS: dict[str, object] = {"min": min, "max": max, "abs": abs}


class Problem(NamedTuple):
    id: str
    text: str
    reference: str


PROBLEMS = (
    Problem("boxes", "x eggs are packed into boxes of y. How many boxes hold them all?", "(x + y - 1) // y"),
    Problem("round-up", "Round x up to a multiple of 5; a multiple of 5 stays. y does not matter.", "(x + 4) // 5 * 5"),
    Problem("gap", "What is the distance between x and y on the number line?", "abs(x - y)"),
    Problem("clamp", "Give x, but at least 10 and at most 90. y does not matter.", "min(max(x, 10), 90)"),
    Problem(
        "fare", "A taxi costs 4 plus 2 per kilometre for x kilometres, and 3 more if y > 6.", "4 + 2*x + 3*(y > 6)"
    ),
    Problem("sum", "What is the sum of the whole numbers from 0 to x? y does not matter.", "x * (x + 1) // 2"),
    Problem("digits", "What is the sum of the last two digits of x? y does not matter.", "x // 10 % 10 + x % 10"),
    Problem("month", "Month 1 is January. Which month (1 to 12) is x months after month y?", "(y - 1 + x) % 12 + 1"),
)


class Sheet(qn.State):
    """World of a formula: nothing but the prompt."""


def function(text: str) -> ast.Expression:
    """Returns the syntax tree of a formula.

    Raises:
        ValueError: It is too long, or holds something that the rules do not allow.
        SyntaxError: It is not an expression.
    """
    if not 0 < len(text) <= LONGEST:
        raise ValueError(f"the expression has {len(text)} characters, expected 1 to {LONGEST}")
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree.body):
        is_allowed = isinstance(node, NODES)
        if isinstance(node, ast.Constant):
            is_allowed = type(node.value) is int
        elif isinstance(node, ast.Name):
            is_allowed = node.id in {"x", "y", *FUNCTIONS}
        elif isinstance(node, ast.Call):
            is_allowed = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords
        if not is_allowed:
            raise ValueError(f"{type(node).__name__} in {ast.unparse(tree)!r} is not allowed")
    return tree


def wrong(text: str, reference: str) -> Iterator[str]:
    """Yields the reasons why a formula is not right."""
    try:
        given, wanted = (compile(function(one), "formula", "eval") for one in (text, reference))
        for inputs in ({"x": x, "y": y} for x in range(121) for y in range(1, 13)):
            names: dict[str, object] = {"__builtins__": {}, **FUNCTIONS, **inputs}
            found, right = eval(given, names), eval(wanted, names)  # noqa: S307 (allowed nodes only)
            if found != right:
                yield f"for {inputs} it gives {found}, expected {right}"
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError) as error:
        yield f"{type(error).__name__}: {error}"


@qn.reward
def right_everywhere(view: qn.EpisodeView[Sheet]) -> qn.Score:
    reason = next(wrong(last_block(view.answer).strip(), view.task.truth), "")
    return qn.Score(float(not reason), reason or "right for all inputs")


def task(problem: Problem) -> qn.Task[Sheet]:
    return qn.Task(
        id=problem.id,
        prompt=f"{problem.text} {RULES}",
        start=Sheet(),
        truth=problem.reference,
        solution=(),
        answer=problem.reference,
    )


env = qn.Environment(
    "formula_code",
    tasks=lambda split: map(task, PROBLEMS),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(right_everywhere),
    state=Sheet,
    splits=("test",),
)
