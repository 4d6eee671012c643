"""Trains against a server with TRL's GRPOTrainer and its OpenRewardSpec, on a CPU: `python trl_trainer.py URL`.

The model has a few thousand weights and knows nothing, so what it "draws" is written here, as text in its own chat
format: the first of two members counts and submits rightly, the second submits a wrong number. Everything else, from
the dataset over the tools' schemas to the optimizer's step, is TRL's.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

URL = sys.argv[1]
os.environ |= {
    "OPENREWARD_SESSION_URL": URL,
    "OPENREWARD_API_URL": URL,
    "OPENREWARD_DISABLE_UPDATE_CHECK": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "HF_HUB_OFFLINE": "1",
}
sys.path.append(str(Path(__file__).parents[4] / "src"))  # Quintain is not installed here, but its checkout can be read.

import torch  # noqa: E402  # the address must stand in the environment first
import trl  # noqa: E402
from _facts import tell  # noqa: E402
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402
from trl.experimental.openreward import OpenRewardSpec  # noqa: E402

MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")


def tokenizer() -> Any:
    """A byte-level tokenizer with the chat format of Qwen3."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bare = Tokenizer(models.BPE(vocab={letter: place for place, letter in enumerate(alphabet)}, merges=[]))
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bare.decoder = decoders.ByteLevel()
    bare.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    bare.add_tokens([AddedToken(mark, normalized=False) for mark in MARKS])
    whole = PreTrainedTokenizerFast(tokenizer_object=bare, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    whole.chat_template = (Path(str(trl.__file__)).parent / "chat_templates" / "qwen3.jinja").read_text("utf-8")
    return whole


def network(words: Any) -> Any:
    """A model so small that a step takes no time."""
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), max_position_embeddings=4096, **shape, **heads))


def policy(prompt: str, *, wrong: bool) -> str:
    """Returns the agent's next text, which depends on its prompt alone."""
    wanted = int(next(iter(re.findall(r"Count to (\d+)", prompt))))
    said = prompt.rpartition("Count to")[2]
    if "Handed in" in said:
        return "Done.<|im_end|>"
    call = {"name": "submit", "arguments": {"answer": wanted + wrong}}
    if "The count is" not in said:
        call = {"name": "add", "arguments": {"by": wanted}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call><|im_end|>"


class Scripted(GRPOTrainer):
    """The trainer, whose policy is the text above."""

    places: range
    """Where in the batch the members stand that still play."""

    def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **named: Any) -> Any:
        prompts = [self.processing_class.decode(ids) for ids in prompt_ids]
        whole = len(prompts) == self.args.per_device_train_batch_size
        self.places = range(len(prompts)) if whole else self.places[: len(prompts)]
        texts = [policy(prompt, wrong=bool(place % 2)) for place, prompt in zip(self.places, prompts, strict=True)]
        completions = [self.processing_class.encode(text, add_special_tokens=False) for text in texts]
        self.seen = [*getattr(self, "seen", []), *texts]
        return completions, None


def main() -> None:
    spec = OpenRewardSpec(URL, split="train", num_tasks=2)
    words = tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Scripted(
            model=network(words),
            processing_class=words,
            train_dataset=spec.train_dataset,
            environment_factory=spec.environment_factory,
            reward_funcs=spec.reward_funcs,
            args=GRPOConfig(
                output_dir=folder,
                use_cpu=True,
                bf16=False,
                num_generations=2,
                per_device_train_batch_size=4,
                max_steps=1,
                max_completion_length=1024,
                max_tool_calling_iterations=4,
                report_to="none",
                save_strategy="no",
                logging_steps=1,
                learning_rate=1e-3,
            ),
        )
        before = [weight.detach().clone() for weight in trainer.model.parameters()]
        trainer.train()
        changed = any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
        environments = trainer._environment_pool[None]
        facts = {
            "columns": sorted(spec.train_dataset.column_names),
            "tools": sorted(tool.__name__ for tool in trainer.tools),
            "log": dict(trainer.state.log_history[0]),
            "changed": changed,
            "seen": trainer.seen,
            "rewards": [one.reward for one in environments],
            "finished": [one.finished for one in environments],
            "steps": [one.rewards for one in environments],
            "metadata": [one.metadata for one in environments],
            "after_the_end": environments[0].peek(),
        }
        for one in environments:
            one._close()
    tell(facts)


if __name__ == "__main__":
    main()
