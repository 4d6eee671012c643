"""A counter behind the reference server of the Open Reward Standard, as its own package starts it; argument: port."""

from __future__ import annotations

import sys

from ors import Environment, Server, TextBlock, ToolOutput, tool


class Counter(Environment):
    def __init__(self, task_spec=None, secrets=None):
        super().__init__(task_spec or {}, secrets or {})
        self.value = 0

    def get_prompt(self):
        return [TextBlock(text="Count up.")]

    @classmethod
    def list_tasks(cls, split):
        return [{"id": f"{split}-{number}"} for number in range(1000)]

    @classmethod
    def list_splits(cls):
        return ["train"]

    @tool
    async def add(self) -> ToolOutput:
        """Count one up."""
        self.value += 1
        return ToolOutput(blocks=[TextBlock(text=str(self.value))], reward=0.0, finished=False)


if __name__ == "__main__":
    Server([Counter]).run(host="127.0.0.1", port=int(sys.argv[1]))
