"""Subjects of the tests of partial work, quoted verdicts, dear looks and rates: sound, and with one bug each."""

from __future__ import annotations

from typing import Any


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


class Rounds:
    """Name the doubles of four numbers, one call for each; the reward is the share that is right."""

    of_all = True

    def tasks(self) -> list[str]:
        return ["1 2 3 4", "5 6 7 8"]

    def tools(self) -> list[dict[str, Any]]:
        return [{"name": "submit_double", "description": "", "parameters": _schema(value={"type": "integer"})}]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.said = task, list[bool]()
        return f"Submit the doubles of {task}, one after the other."

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        value = arguments.get("value")
        if name != "submit_double" or type(value) is not int or len(self.said) == 4:
            return {"error": "submit_double takes a whole number, four times"}
        self.said.append(value == 2 * int(self.task.split()[len(self.said)]))
        return {"taken": len(self.said)}

    def score(self) -> float:
        return sum(self.said) / (4 if self.of_all else max(1, len(self.said)))

    def oracle(self, task: str) -> list[Any]:
        return [["submit_double", {"value": 2 * int(one)}] for one in task.split()]


class Tried(Rounds):
    of_all = False


class Compiler:
    """Write the line "print N"; the verdict is read from what the compiler says, line by line."""

    first = False

    def tasks(self) -> list[str]:
        return ["7", "12"]

    def tools(self) -> list[dict[str, Any]]:
        return [
            {"name": "write_file", "description": "", "parameters": _schema(content={"type": "string"})},
            {"name": "compile", "description": "", "parameters": _schema()},
        ]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.text = task, ""
        return f"Write a file that prints {task}."

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "compile":
            return {"output": self.output()}
        if name != "write_file" or not isinstance(arguments.get("content"), str):
            return {"error": "there are compile and write_file(content)"}
        self.text = arguments["content"]
        return {"written": len(self.text)}

    def output(self) -> str:
        lines = self.text.splitlines()
        wrong = [f"unknown: {line}" for line in lines if line != f"print {self.task}"]
        is_right = lines == [f"print {self.task}"]
        return "\n".join([*wrong, f"STATUS {0 if is_right else 1}"])

    def score(self) -> float:
        found = [line for line in self.output().split() if line in ("0", "1")]
        return float(found[0 if self.first else -1] == "0")

    def oracle(self, task: str) -> list[Any]:
        return [["write_file", {"content": f"print {task}"}]]


class Quoting(Compiler):
    first = True


class Bank:
    """Bank that credits an account; other changes are forbidden, and reads are logged."""

    logs, raw = False, False

    def tasks(self) -> list[str]:
        return ["a1", "a2"]

    def tools(self) -> list[dict[str, Any]]:
        text, number = {"type": "string", "enum": ["a1", "a2"]}, {"type": "number", "exclusiveMinimum": 0}
        return [
            {"name": "get_account", "description": "", "parameters": _schema(account=text)},
            {"name": "credit_account", "description": "", "parameters": _schema(account=text, amount=number)},
        ]

    def reset(self, task: str, seed: int) -> str:
        self.task = task
        self.world: dict[str, Any] = {"accounts": {"a1": 10.0, "a2": 20.0}, "credits": {}, "looks": []}
        return f"Credit 5 dollars to {task}."

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        account, amount = arguments.get("account"), arguments.get("amount", 1)
        if name not in ("get_account", "credit_account") or account not in ("a1", "a2"):
            return {"error": "no such tool or account"}
        if isinstance(amount, bool) or not isinstance(amount, int | float) or amount <= 0:
            return {"error": "an amount is a number above 0"}
        if name == "get_account":
            self.world["looks"].append(account)
            return {"balance": self.world["accounts"][account]}
        key = f"credit {amount if self.raw else float(amount)}"
        self.world["credits"][key] = account
        self.world["accounts"][account] += amount
        return {"credit": key}

    def score(self) -> float:
        gold = Bank()
        gold.raw = self.raw
        gold.reset(self.task, 0)
        gold.call(*self.oracle(self.task)[0])
        kept = ("accounts", "credits", "looks") if self.logs else ("accounts", "credits")
        return float(all(self.world[name] == gold.world[name] for name in kept))

    def oracle(self, task: str) -> list[Any]:
        return [["credit_account", {"account": task, "amount": 5.0}]]

    def state(self) -> dict[str, Any]:
        return self.world


class Logged(Bank):
    logs = True


class Spelled(Bank):
    raw = True


class Puzzles:
    """A fifth of the puzzles is said to have no answer."""

    share = 5

    def tasks(self) -> list[str]:
        return [f"p{number}" for number in range(60)]

    def tools(self) -> list[dict[str, Any]]:
        return [{"name": "submit", "description": "", "parameters": _schema(answer={"type": "string"})}]

    def reset(self, task: str, seed: int) -> str:
        self.number, self.said = int(task[1:]), ""
        return f"Is there an answer to {task}?"

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.said = str(arguments.get("answer"))
        return {"taken": True}

    @property
    def impossible(self) -> bool:
        return self.number % self.share == 0

    def score(self) -> float:
        return float(self.said == ("no" if self.impossible else "yes"))

    def state(self) -> dict[str, Any]:
        return {"impossible": self.impossible}

    def production(self) -> dict[str, Any]:
        return {"rates": {"impossible": 0.2}}


class Halves(Puzzles):
    share = 2
