"""TRL: both GRPO trainers learn from episodes, and failed ones teach nothing."""

from __future__ import annotations

import asyncio
import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.errors import RunStopped, UsageError
from quintain.harness import Model, Request
from quintain.trace import Message, Reply, Tokens
from tests.train import tiny

trl: Any = pytest.importorskip("trl", reason="pip install '.[trl]'")
datasets: Any = pytest.importorskip("datasets", reason="pip install '.[trl]'")

from quintain.train.advantages import leave_one_out  # noqa: E402
from quintain.train.engine import Engine  # noqa: E402
from quintain.train.trl import RolloutFunc, RolloutWorker, WeightTransfer, score  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Of TRL and what it stands on.
torch = tiny.torch
NAMES = ("ann", "ben", "cleo", "dora")


class Letter(qn.State):
    pass


@qn.reward
def lowercase(view: qn.EpisodeView[Letter]) -> float:
    said = view.trace.turns[-1].reply.message.text
    return sum(letter.islower() for letter in said) / (len(said) + 1)


@qn.reward
def broken_half(view: qn.EpisodeView[Letter]) -> float:
    """Raises for every other episode; all others are equally good."""
    if view.trace.member % 2:
        raise RuntimeError("the grader is down")
    return 1.0


def environment(verifier: Any = lowercase, **config: Any) -> qn.Environment[Letter]:
    def tasks(split: str) -> list[qn.Task[Letter]]:
        return [qn.Task(id=f"{split}-{name}", prompt=f"To {name}", start=Letter()) for name in NAMES]

    config = {"max_reply_tokens": 8, "gate_rate": None, "group_retries": 0} | config
    return qn.Environment(
        "letter",
        tasks=tasks,
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(verifier),
        state=Letter,
        config=qn.Config(**config),
    )


def weights(model: Any) -> dict[str, Any]:
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters()}


def changed(model: Any, before: dict[str, Any]) -> bool:
    return any(not torch.equal(tensor, before[name]) for name, tensor in model.named_parameters())


# --- GRPOTrainer ---


def trainer(env: qn.Environment[Letter], folder: Path, *, model: Any = None, steps: int = 3, **how: Any) -> Any:
    prompts = [{"prompt": task.id} for task in env.tasks("train")]
    config = trl.GRPOConfig(
        str(folder),
        per_device_train_batch_size=32,
        num_generations=8,
        max_steps=steps,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    if "model_" in how:
        how = {"model": how["model_"], "control": how["model_"]}
    return trl.GRPOTrainer(
        model=model or tiny.model(),
        reward_funcs=score,
        args=config,
        train_dataset=datasets.Dataset.from_list(prompts),
        processing_class=tiny.tokenizer(),
        rollout_func=RolloutFunc(env, **how),
    )


def logged(trainer: Any, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def test_grpo_learns_from_episodes(tmp_path: Path) -> None:
    made = trainer(environment(), tmp_path, steps=12)
    before = weights(made.model)
    made.train()
    rewards = logged(made, "reward")
    assert changed(made.model, before)
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2
    assert logged(made, "episodes/without_score") == [0.0] * 12
    assert made.model.training


def test_failed_episodes_give_grpo_no_gradient(tmp_path: Path) -> None:
    made = trainer(environment(broken_half), tmp_path)
    before = weights(made.model)
    made.train()
    assert logged(made, "episodes/without_score") == [0.5] * 3
    assert logged(made, "reward") == [1.0] * 3
    assert not changed(made.model, before)  # As zeros, they would have pushed against half of the replies.


def test_a_group_without_a_score_gives_grpo_no_gradient(tmp_path: Path) -> None:
    @qn.reward
    def broken(view: qn.EpisodeView[Letter]) -> float:
        raise RuntimeError("the grader is down")

    made = trainer(environment(broken), tmp_path)
    before = weights(made.model)
    made.train()
    assert logged(made, "episodes/without_score") == [1.0] * 3
    assert not any(math.isnan(loss) for loss in logged(made, "loss"))
    assert not changed(made.model, before)


def test_the_failure_gate_stops_grpo(tmp_path: Path) -> None:
    made = trainer(environment(broken_half, gate_rate=0.05), tmp_path)
    with pytest.raises(RunStopped, match="the grader is down"):
        made.train()


def test_a_model_of_its_own_gets_the_weights_of_each_step(tmp_path: Path) -> None:
    engine = Engine(tiny.model(seed=1), tiny.tokenizer())
    made = trainer(environment(), tmp_path, model=tiny.model(), steps=2, model_=engine)
    first = weights(made.model)
    sent: list[dict[str, Any]] = []
    update = engine.update

    def recorded(given: Any, version: int) -> None:
        sent.append({name: tensor.detach().clone() for name, tensor in given.items()})
        update(given, version)

    engine.update = recorded  # type: ignore[method-assign]
    made.train()
    engine.close()
    assert engine.version == 1
    assert len(sent) == 2
    assert all(torch.equal(tensor, sent[0][name]) for name, tensor in first.items())
    assert any(not torch.equal(tensor, sent[1][name]) for name, tensor in first.items())


def fake(*, size: int = 4, temperature: float = 1.0, training: bool = True) -> Any:
    """Returns the part of a GRPOTrainer that a rollout function sees."""
    model = tiny.model().train(training)
    return SimpleNamespace(
        model=model,
        accelerator=SimpleNamespace(unwrap_model=lambda one: one, process_index=0),
        args=SimpleNamespace(temperature=temperature),
        state=SimpleNamespace(global_step=0),
        num_generations=size,
        num_generations_eval=2,
        processing_class=tiny.tokenizer(),
    )


def test_rows_are_those_of_the_prompts_tasks_in_order() -> None:
    play, made = RolloutFunc(environment()), fake()
    prompts = [f"train-{name}" for name in ("ben", "ann", "ben") for _ in range(4)]
    columns = play(prompts, made)
    texts = made.processing_class.batch_decode(columns["prompt_ids"])
    assert [f"train-{name}" for text in texts for name in NAMES if f"To {name}" in text] == prompts
    assert columns["completion_ids"][:4] != columns["completion_ids"][8:]  # Two groups of one task are not alike.
    assert all(len(ids) == len(mask) for ids, mask in zip(columns["completion_ids"], columns["env_mask"], strict=True))
    again = play(prompts, made)
    assert again["completion_ids"] != columns["completion_ids"]
    assert made.model.training


def test_rows_without_a_score_have_no_token_to_train_on() -> None:
    columns = RolloutFunc(environment(broken_half))(["train-ann"] * 4, fake())
    assert columns["score"] == [1.0, None, 1.0, None]
    assert [any(mask) for mask in columns["env_mask"]] == [True, False, True, False]


def test_evaluation_plays_groups_of_its_own_size() -> None:
    columns = RolloutFunc(environment())(["train-ann"] * 2 + ["train-ben"] * 2, fake(training=False))
    assert len(columns["score"]) == 4


@pytest.mark.parametrize(
    ("prompts", "trainer", "message"),
    [
        (["train-eve"] * 4, {}, "no task 'train-eve'"),
        (["train-ann"] * 3, {}, "prompt 'train-ann' comes 3 times in a row, and a group has 4; make per_device"),
        (["train-ann"] * 4, {"temperature": 0.7}, "the trainer's temperature is 0.7, the environment's 1.0"),
    ],
)
def test_prompts_that_cannot_be_played_are_refused(prompts: list[str], trainer: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RolloutFunc(environment())(prompts, fake(**trainer))


def test_a_model_without_logprobs_is_refused() -> None:
    async def bare(request: Request) -> Reply:
        return Reply(Message("assistant", "hi"), Tokens([1], [2]))

    with pytest.raises(UsageError, match="has no logprobs, which trl needs; use an endpoint that returns them"):
        RolloutFunc(environment(), bare)(["train-ann"] * 4, fake())
