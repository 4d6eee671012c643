"""Trains with TRL against an environment without a tool that ends it: `python trl_plain_words.py URL`.

The model has a few thousand weights and draws random bytes, so every rollout ends in plain words.
"""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import tempfile
from typing import Any

from _facts import tell
from trl import GRPOConfig, GRPOTrainer
from trl.experimental.openreward import OpenRewardSpec
from trl_trainer import URL, network, tokenizer

from quintain.serve.client.trl import reward_function


def main() -> None:
    words, seen = tokenizer(), dict[str, list[Any]](scores=[], said=[], unscored=[])
    spec = OpenRewardSpec(URL, split="train", num_tasks=2)
    scored = reward_function(URL)

    def score(environments: Any, completions: Any, **more: Any) -> list[float | None]:
        seen["said"] += [completion[-1]["content"] for completion in completions]
        seen["unscored"] += spec.reward_funcs(environments=environments)
        seen["scores"] += (scores := scored(environments=environments, completions=completions, **more))
        return scores

    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=network(words),
            processing_class=words,
            train_dataset=spec.train_dataset,
            environment_factory=spec.environment_factory,
            reward_funcs=score,
            args=GRPOConfig(
                output_dir=folder,
                use_cpu=True,
                bf16=False,
                num_generations=4,
                per_device_train_batch_size=8,
                max_steps=2,
                max_completion_length=256,
                max_tool_calling_iterations=2,
                report_to="none",
                save_strategy="no",
                logging_steps=1,
                learning_rate=1e-3,
            ),
        )
        trainer.train()
        log = [dict(one) for one in trainer.state.log_history[:2]]
        for one in trainer._environment_pool[None]:
            one._close()
    tools = {tool.__name__: tool.__doc__ for tool in trainer.tools}
    tell({"log": log, "tools": tools, **seen})


if __name__ == "__main__":
    main()
