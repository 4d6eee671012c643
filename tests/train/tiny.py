"""Tiny random Llama with a tokenizer of single characters, built in a second without any download."""

from __future__ import annotations

import string
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="pip install '.[train]'")
transformers: Any = pytest.importorskip("transformers", reason="pip install '.[train]'")
tokenizers: Any = pytest.importorskip("tokenizers", reason="pip install '.[train]'")

CALL = '<tool_call>{{"name": "press", "arguments": {{"button": "{}"}}}}</tool_call>'
CALLS = [CALL.format(colour) for colour in ("red", "green", "blue")]
START, END, PAD = "<|im_start|>", "<|im_end|>", "<pad>"
TEMPLATE = """\
{%- for tool in tools or [] %}{{ START }}tools
{{ tool.function.name }}{{ END }}
{% endfor %}
{%- for message in messages %}{{ START }}{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}</tool_call>' }}{% endfor %}{{ END }}
{% endfor %}
{%- if add_generation_prompt %}{{ START }}assistant
{% endif %}"""


def tokenizer() -> Any:
    """Returns a tokenizer of characters, in which each of `CALLS` is one token."""
    special = [START, END, PAD]
    vocabulary = {text: n for n, text in enumerate([*special, *CALLS, *string.printable])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=PAD))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    made.decoder = tokenizers.decoders.Fuse()
    made.add_special_tokens(special)
    made.add_tokens(CALLS)
    found = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD)
    found.chat_template = TEMPLATE.replace("{{ START }}", START).replace("{{ END }}", END)
    return found


def model(seed: int = 0, *, width: int = 32, layers: int = 2) -> Any:
    """Returns a random model of float32 with a context of 512.

    Args:
        seed: Seed of the weights.
        width: Of the hidden states.
        layers: Number of layers.
    """
    torch.manual_seed(seed)
    words = tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        initializer_range=0.2,
    )
    return transformers.LlamaForCausalLM(config).eval()
