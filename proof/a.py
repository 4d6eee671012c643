"""Part a: a Llama of 0.5 million parameters learns the rules of the desk, by TRL's GRPOTrainer.

It first imitates, once, a clerk who knows the tools and not the rules: the oracle's calls up to the act, then the wish
and the status, on which the rules depend, and a random act. That stands for a pretrained model. Then GRPO, with
`quintain.train.trl.RolloutFunc`, finds the rules. Tested are tasks of another split, before and after, with every seed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import tempfile
from typing import Any

import quintain as qn
from proof import desk
from proof.learn import mean
from proof.rows import Row, by_seed, listed, main, row
from quintain.rollouts import Draw

SEEDS, ORDERS, TESTED = 4, (1, 3), 512
TRACES, STEPS, BATCH, IMITATION_RATE = 4096, 320, 32, 3e-3
SHORT, SHORT_SHARE = 40, 0.35
"""Most tokens of a short episode, and the share of the steps that see only those: copying is learned sooner there."""
UPDATES, TASKS, GROUP, RATE = 120, 8, 8, 5e-4
BETA = 0.1
"""Weight of the KL divergence from the clerk. Without it the policy settles on one act before it tells cases apart."""
END, PAD = "<end>", "<pad>"
ROLES = {"user": "<user>", "assistant": "<agent>", "tool": "<tool>"}
TEMPLATE = """\
{%- set roles = ROLES %}{% for message in messages %}{{ roles[message.role] }}{{ message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>{"name": "{{ call.function.name }}", "arguments": {
{%- if call.function.arguments %}"order": "{{ call.function.arguments.order }}"{% endif %}}}</tool_call>{% endfor -%}
<end>{% endfor %}{% if add_generation_prompt %}<agent>{% endif %}"""


def tokenizer() -> Any:
    """Returns a tokenizer of words; the beginning and the end of a call are a word each."""
    import tokenizers
    import transformers

    calls = ['<tool_call>{"name": "orders", "arguments": {}}</tool_call>', '"}}</tool_call>']
    calls += [f'<tool_call>{{"name": "{name}", "arguments": {{"order": "' for name in ("show", *desk.ACTS)]
    words = [*desk.WISHES, *desk.ITEMS, *desk.STATUSES, *desk.NUMBERS, "done", "unknown", " "]
    special = [PAD, END, *ROLES.values(), *calls]
    vocabulary = {word: n for n, word in enumerate([*special, *words])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=PAD))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(" ", "isolated")
    made.decoder = tokenizers.decoders.Fuse()
    made.add_tokens([tokenizers.AddedToken(word, normalized=False) for word in special])
    found = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD)
    found.chat_template = TEMPLATE.replace("ROLES", json.dumps(ROLES))
    return found


def model(words: Any) -> Any:
    """Returns a Llama with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=256,
        initializer_range=0.08,  # With 0.02, attention is uniform at first, and copying is not learned in 700 steps.
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    return transformers.LlamaForCausalLM(config)


def clerk(words: Any) -> list[tuple[list[int], list[int]]]:
    """Returns (ids, mask) of episodes that know the tools and not the rules; the mask is 1 on what the agent wrote."""
    found: list[tuple[list[int], list[int]]] = []
    rng = random.Random("clerk")  # noqa: S311 (acts, no secrets)
    for n in range(TRACES):
        task = desk.task("clerk", n, orders=ORDERS, long=False)
        *looks, (_, order) = task.solution or ()
        world = task.world().copy()
        ids: list[int] = []
        mask: list[int] = []

        def say(text: str, drawn: int, ids: list[int] = ids, mask: list[int] = mask) -> None:
            new = words(text, add_special_tokens=False)["input_ids"]
            ids.extend(new)
            mask.extend([drawn] * len(new))

        say(f"<user>{task.prompt}{END}", 0)
        seen = ""
        for name, arguments in [*looks, (rng.choice(desk.ACTS), order)]:
            inner = f'"order": "{arguments["order"]}"' if arguments else ""
            note = f"{task.prompt.split()[0]} {seen.split()[1]}" if name in desk.ACTS else ""
            say("<agent>", 0)
            say(f'{note}<tool_call>{{"name": "{name}", "arguments": {{{inner}}}}}</tool_call>{END}', 1)
            seen = getattr(world, name)(**arguments)
            say(f"<tool>{seen}{END}", 0)
        say("<agent>", 0)
        say(f"done{END}", 1)
        found.append((ids, mask))
    return found


def imitate(file: str, steps: int) -> None:
    """Trains a model with random weights on the clerk's episodes, and stores it."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    words, rng = tokenizer(), random.Random(0)  # noqa: S311 (episodes, no secrets)
    episodes, network = clerk(words), model(words)
    optimizer = torch.optim.AdamW(network.parameters(), lr=IMITATION_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, IMITATION_RATE, total_steps=steps + 1)
    short = [one for one in episodes if len(one[0]) <= SHORT]
    network.train()
    for step in range(steps):
        batch = rng.sample(short if step < SHORT_SHARE * steps else episodes, BATCH)
        width = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([ids + [0] * (width - len(ids)) for ids, _ in batch])
        mask = torch.tensor([mask + [0] * (width - len(mask)) for _, mask in batch])
        loss = network(input_ids=ids, labels=ids.masked_fill(mask == 0, -100)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.save_pretrained(file)


def environment() -> qn.Environment[desk.Desk]:
    """Returns the desk with a limit on replies: seven of the longest ones fit into the model's 256 tokens."""
    env = desk.environment(orders=ORDERS)
    return env.replace(config=qn.Config(max_turns=env.config.max_turns, max_reply_tokens=16))


def test(network: Any, words: Any, seed: int, *, tested: int) -> float:
    """Returns the mean score on held-out tasks."""
    from quintain.train.engine import Engine

    env, engine = environment(), Engine(network, words)

    async def run() -> float:
        draws = [Draw(task, seed) for task in env.tasks("test")[:tested]]
        return mean([group.traces[0].score async for group in qn.rollouts(env, engine, draws)])

    try:
        return asyncio.run(run())
    finally:
        engine.close()


def learn(file: str, seed: int, quick: bool) -> tuple[float, float, list[float]]:  # noqa: FBT001 (an argument of a process)
    """Returns the score before and after, and the training scores of each tenth of the updates."""
    import torch
    import transformers
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from quintain.train.trl import RolloutFunc, score

    torch.set_num_threads(1)
    updates, tested = (2, 8) if quick else (UPDATES, TESTED)
    words = tokenizer()
    network = transformers.AutoModelForCausalLM.from_pretrained(file)  # By its path, TRL finds the weights for the KL.
    before = test(network, words, seed, tested=tested)
    env = environment()
    with tempfile.TemporaryDirectory() as folder:
        args = GRPOConfig(
            folder,
            max_steps=updates,
            num_generations=GROUP,
            per_device_train_batch_size=TASKS * GROUP,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            beta=BETA,
            epsilon_high=0.28,
            logging_steps=max(1, updates // 10),
            bf16=False,
            use_cpu=True,
            seed=seed,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        )
        prompts = Dataset.from_list([{"prompt": task.id} for task in env.tasks("train")])
        trainer = GRPOTrainer(
            network,
            reward_funcs=score,
            args=args,
            train_dataset=prompts,
            processing_class=words,
            rollout_func=RolloutFunc(env),
        )
        trainer.train()
    curve = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    return before, test(network, words, seed, tested=tested), curve


def measure(quick: bool) -> list[Row]:  # noqa: FBT001
    """Returns the rows."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    seeds = 1 if quick else SEEDS
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/clerk"
        by_seed(imitate, [(file, 2 if quick else STEPS)])
        found = by_seed(learn, [(file, seed, quick) for seed in range(seeds)])
    before, after = [one for one, _, _ in found], [one for _, one, _ in found]
    by = (f"before {listed(before)}; after {listed(after)}", None)
    return [
        row(
            f"a: held-out score, mean of {seeds} seeds, after / before",
            mean(after) / max(mean(before), 1e-9),
            "x",
            least=2,
            beside=by,
        ),
        row("a: held-out score after GRPO, mean", mean(after), "score", beside=("before", mean(before))),
        row("a: gain of the worst seed", min(a - b for a, b in zip(after, before, strict=True)), "score", least=0),
        row(
            "a: training score by tenth, mean",
            mean([one[-1] for *_, one in found]),
            "score",
            beside=("; ".join(listed(one) for *_, one in found), None),
        ),
    ]


if __name__ == "__main__":
    main("a: a small Llama", measure)
