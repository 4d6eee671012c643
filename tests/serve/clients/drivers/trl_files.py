"""Loads exported files with `datasets` and trains on them with TRL, on a CPU: `python trl_files.py SFT DPO`."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import sys
import tempfile
from typing import Any

from _facts import tell
from datasets import load_dataset
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
from trl.data_utils import is_conversational
from trl_trainer import network, tokenizer


def train(trainer_class: Any, config: Any, file: str) -> dict[str, Any]:
    """Returns what a trainer logs of its first step on a file."""
    rows = load_dataset("json", data_files=file, split="train")
    words = tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"use_cpu": True, "bf16": False, "report_to": "none", "save_strategy": "no"}
        arguments = config(
            folder, max_steps=1, max_length=4096, logging_steps=1, per_device_train_batch_size=2, **settings
        )
        reference = {"ref_model": network(words)} if trainer_class is DPOTrainer else {}
        trainer = trainer_class(
            model=network(words), args=arguments, train_dataset=rows, processing_class=words, **reference
        )
        columns = [name for name in trainer.train_dataset.column_names if name.endswith("_ids")]
        seen = {name: words.decode(trainer.train_dataset[0][name]) for name in columns}
        trainer.train()
        log = dict(trainer.state.log_history[0])
    return {"rows": len(rows), "conversational": is_conversational(rows[0]), "seen": seen, "log": log}


def main() -> None:
    sft, dpo = sys.argv[1:]
    tell({"sft": train(SFTTrainer, SFTConfig, sft), "dpo": train(DPOTrainer, DPOConfig, dpo)})


if __name__ == "__main__":
    main()
