"""Trains with TRL's GRPOTrainer and the class around OpenEnv's client: `python openenv_trainer.py URL FOLDER`.

The model and what it "draws" are those of the driver for the Open Reward Standard.
"""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import tempfile
from typing import Any

from _facts import error, tell
from datasets import Dataset
from openenv_newest import Count
from trl import GRPOConfig
from trl_trainer import Scripted, network, tokenizer


def main() -> None:
    words = tokenizer()
    rows: list[dict[str, Any]] = [
        {"prompt": [{"role": "user", "content": "Play."}], "split": "train", "index": index} for index in (0, 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Scripted(
            model=network(words),
            processing_class=words,
            train_dataset=Dataset.from_list(rows),
            environment_factory=Count,
            args=GRPOConfig(
                output_dir=folder,
                use_cpu=True,
                bf16=False,
                num_generations=2,
                per_device_train_batch_size=4,
                max_steps=2,
                max_completion_length=1024,
                max_tool_calling_iterations=4,
                report_to="none",
                save_strategy="no",
                logging_steps=1,
                learning_rate=1e-3,
            ),
        )
        trainer.train()
        environments = trainer._environment_pool[None]
        tell(
            {
                "tools": sorted(tool.__name__ for tool in trainer.tools),
                "log": [dict(one) for one in trainer.state.log_history[:2]],
                "rewards": [one.reward for one in environments],
                "late": error(lambda: environments[0].submit(1)),
            }
        )
        for one in environments:
            one.client.close()


if __name__ == "__main__":
    main()
