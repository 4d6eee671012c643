"""TRL: both GRPO trainers learn from episodes, and failed ones teach nothing."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.errors import RunStopped, UsageError
from quintain.harness import Model, Request, Session
from quintain.trace import Message, Reply, Tokens
from tests.train import tiny

trl: Any = pytest.importorskip("trl", reason="pip install '.[trl]'")
datasets: Any = pytest.importorskip("datasets", reason="pip install '.[trl]'")

from quintain.train.advantages import leave_one_out  # noqa: E402
from quintain.train.engine import Engine  # noqa: E402
from quintain.train.report import TrainingLog, read_updates  # noqa: E402
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


def trainer(env: qn.Environment[Letter], folder: Path, *, steps: int = 3, play: Any = None) -> Any:
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
        disable_tqdm=True,
    )
    return trl.GRPOTrainer(
        model=tiny.model(),
        reward_funcs=score,
        args=config,
        train_dataset=datasets.Dataset.from_list(prompts),
        processing_class=tiny.tokenizer(),
        rollout_func=play or RolloutFunc(env),
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


def test_updates_of_grpo_are_logged(tmp_path: Path) -> None:
    env = environment(broken_half)
    with TrainingLog(tmp_path / "log") as log:
        trainer(env, tmp_path, play=RolloutFunc(env, log=log)).train()
    found = read_updates(tmp_path / "log")
    assert [one.step for one in found] == [0, 1, 2]
    assert [(one.counts.whole.episodes, one.counts.whole.scored) for one in found] == [(32, 16)] * 3
    assert [set(one.counts.lags) for one in found] == [{0}] * 3
    assert [set(one.metrics) for one in found] == [set()] + [{"loss", "grad_norm", "learning_rate"}] * 2


def test_a_loss_that_is_not_finite_stops_grpo(tmp_path: Path) -> None:
    env = environment()
    with TrainingLog(tmp_path / "log") as log:
        made = trainer(env, tmp_path, play=RolloutFunc(env, log=log))
        made.compute_loss = lambda model, *_, **__: sum(one.sum() for one in model.parameters()) * math.nan
        with pytest.raises(UsageError, match=r"step 1: metric '(loss|grad_norm)' is nan, expected a finite number"):
            made.train()


def test_a_model_of_its_own_gets_the_weights_of_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tiny.model(seed=1), tiny.tokenizer())
    env = environment()
    made = trainer(env, tmp_path, steps=2, play=RolloutFunc(env, engine, control=engine))
    first = weights(made.model)
    sent: list[dict[str, Any]] = []
    update = engine.update

    def recorded(given: Any, version: int) -> None:
        sent.append({name: tensor.detach().clone() for name, tensor in given.items()})
        update(given, version)

    monkeypatch.setattr(engine, "update", recorded)
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
        state=SimpleNamespace(global_step=0, log_history=[]),
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


class Talk(msgspec.Struct, frozen=True):
    """Harness that lets the model speak three times."""

    async def play(self, session: Session, model: Model) -> None:
        for _ in range(3):
            await session.step(await model(session.request()))
            session.append(Message("user", "more"))
        session.terminate("over")


def test_rows_mask_the_text_between_replies() -> None:
    made = fake()
    columns = RolloutFunc(environment().replace(harness=Talk()))(["train-ann"] * 4, made)
    for ids, mask in zip(columns["completion_ids"], columns["env_mask"], strict=True):
        spans = [list(group) for _, group in itertools.groupby(zip(ids, mask, strict=True), key=lambda pair: pair[1])]
        assert [span[0][1] for span in spans] == [1, 0, 1, 0, 1]
        assert all("user\nmore" in made.processing_class.decode([one for one, _ in span]) for span in spans[1::2])


class Forgetful(msgspec.Struct, frozen=True):
    """Harness that replaces the context after the first reply."""

    async def play(self, session: Session, model: Model) -> None:
        await session.step(await model(session.request()))
        session.set_context([Message("user", "a summary")])
        await session.step(await model(session.request()))
        session.terminate("over")


def test_a_rewritten_context_gives_grpo_one_row_and_async_grpo_all(engine: Engine) -> None:
    env, made = environment().replace(harness=Forgetful()), fake()
    columns = RolloutFunc(env)(["train-ann"] * 4, made)
    assert all("a summary" in text for text in made.processing_class.batch_decode(columns["prompt_ids"]))
    samples = taken(RolloutWorker(env, engine, group=4), 8)
    assert len({one.group_id for one in samples}) == 1
    assert sum("a summary" in made.processing_class.decode(one.input_ids.tolist()) for one in samples) == 4


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


# --- AsyncGRPOTrainer ---


def attention(query: Any, key: Any, value: Any, *rest: Any, softmax_scale: float, **_: Any) -> Any:
    """Stands for FlashAttention-3, which only GPUs have: attention of segments to the paths that lead to them."""
    found, edges = [], zip(*(itertools.pairwise(one.tolist()) for one in rest[:2]), strict=True)
    for (a, b), (c, d) in edges:
        q, k, v = (one.transpose(0, 1)[None] for one in (query[a:b], key[c:d], value[c:d]))
        seen = torch.ones(b - a, d - c, dtype=torch.bool).tril(d - c - b + a)
        made = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=seen, scale=softmax_scale, enable_gqa=True
        )
        found.append(made[0].transpose(0, 1))
    return torch.cat(found)


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces what AsyncGRPOTrainer asks of a GPU."""
    packing = pytest.importorskip("trl.experimental.async_grpo.packing")
    module = pytest.importorskip("trl.experimental.async_grpo.async_grpo_trainer")
    monkeypatch.setattr(packing, "_flash_attn", lambda: SimpleNamespace(flash_attn_varlen_func=attention))
    monkeypatch.setattr(module, "get_peak_flops_per_device", lambda *_: None)


def async_trainer(
    env: qn.Environment[Letter], folder: Path, engine: Engine, *, steps: int = 6, log: TrainingLog | None = None
) -> Any:
    grpo = pytest.importorskip("trl.experimental.async_grpo")
    tiny.model().save_pretrained(folder / "model")
    config = grpo.AsyncGRPOConfig(
        str(folder / "out"),
        per_device_train_batch_size=16,
        max_steps=steps,
        learning_rate=1e-2,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        dtype="float32",
        token_budget=0,
        disable_tqdm=True,
    )
    return grpo.AsyncGRPOTrainer(
        str(folder / "model"),
        args=config,
        train_dataset=datasets.Dataset.from_list([{"prompt": "not read"}]),
        processing_class=tiny.tokenizer(),
        rollout_worker=RolloutWorker(env, engine, group=8, ahead=32, log=log),
        weight_transfer=WeightTransfer(engine),
    )


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(tiny.model(), tiny.tokenizer())
    yield made
    made.close()


@pytest.mark.usefixtures("on_cpu")
def test_async_grpo_learns_while_episodes_are_played(tmp_path: Path, engine: Engine) -> None:
    made = async_trainer(environment(), tmp_path, engine, steps=30)
    before = weights(made.model)
    made.train()
    rewards = logged(made, "reward")
    assert changed(made.model, before)
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.1
    assert engine.version == 31  # One before the first step, one after each.
    assert all(torch.equal(tensor, engine.network.state_dict()[name]) for name, tensor in weights(made.model).items())
    assert logged(made, "ratio")[0] == pytest.approx(1.0, abs=1e-3)
    assert max(logged(made, "sample/staleness_max")) <= 4
    assert set(logged(made, "episodes/without_score")) == {0.0}


@pytest.mark.usefixtures("on_cpu")
def test_weights_that_are_not_finite_stop_async_grpo(tmp_path: Path, engine: Engine) -> None:
    made = async_trainer(environment(), tmp_path, engine)
    made.optimizer = torch.optim.SGD(made.model.parameters(), lr=math.nan)
    with pytest.raises(UsageError, match="of version 2 has NaN or infinity; stop the trainer"):
        made.train()
    assert engine.version == 1


@pytest.mark.usefixtures("on_cpu")
def test_failed_episodes_give_async_grpo_no_gradient(tmp_path: Path, engine: Engine) -> None:
    with TrainingLog(tmp_path / "log") as log:
        made = async_trainer(environment(broken_half), tmp_path, engine, log=log)
        before = weights(made.model)
        made.train()
    counts = [one.counts for one in read_updates(tmp_path / "log")]
    assert len(counts) == 7  # One before the first step, one after each.
    assert sum(one.whole.episodes for one in counts) >= 6 * 16
    assert all(one.whole.scored * 2 == one.whole.episodes for one in counts)
    assert {lag for one in counts for lag in one.lags} <= {0, 1, 2, 3, 4}
    assert set(logged(made, "reward")) == {1.0}
    assert set(logged(made, "episodes/without_score")) == {0.5}
    assert not changed(made.model, before)


@pytest.mark.usefixtures("on_cpu")
def test_the_failure_gate_stops_async_grpo(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    made = async_trainer(environment(broken_half, gate_rate=0.05), tmp_path, engine, steps=1000)
    with pytest.raises(RunStopped, match="the grader is down"):
        made.train()


def taken(worker: RolloutWorker[Letter], count: int) -> list[Any]:
    """Returns the first samples of a worker, which then stops."""
    worker.start()
    try:
        return [worker.rollout_buffer.get(timeout=60) for _ in range(count)]
    finally:
        worker.stop()


def test_samples_of_a_group_are_of_one_task_with_advantages_around_zero(engine: Engine) -> None:
    samples = taken(RolloutWorker(environment(), engine, group=4), 48)
    words = tiny.tokenizer()
    groups = [list(one) for _, one in itertools.groupby(samples, key=lambda sample: sample.group_id)]
    prompts = [{words.decode(one.input_ids[: one.completion_mask.argmax()].tolist()) for one in g} for g in groups]
    assert [len(one) for one in groups] == [4] * 12
    assert [len(one) for one in prompts] == [1] * 12
    assert len(set().union(*prompts)) == len(NAMES)
    assert len({one.group_id for one in samples}) == 12
    for group in groups:
        rewards = [one.metrics["reward"] for one in group]
        assert [one.advantage for one in group] == pytest.approx([r - sum(rewards) / 4 for r in rewards])


def test_samples_have_the_logprobs_of_what_was_drawn(engine: Engine) -> None:
    for one in taken(RolloutWorker(environment(), engine, group=4), 8):
        with torch.no_grad():
            found = torch.log_softmax(engine.network(torch.tensor(one.input_ids)[None]).logits[0], -1)
        wanted = found[range(len(one.input_ids) - 1), one.input_ids[1:]] * one.completion_mask[1:]
        assert one.old_log_probs[1:].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


def test_advantages_may_be_those_of_another_function(engine: Engine) -> None:
    samples = taken(RolloutWorker(environment(), engine, group=4, advantages=leave_one_out), 4)
    rewards = [one.metrics["reward"] for one in samples]
    assert [one.advantage for one in samples] == pytest.approx([r - (sum(rewards) - r) / 3 for r in rewards])


def test_replies_without_versions_have_the_one_that_was_live() -> None:
    async def bare(request: Request) -> Reply:
        await asyncio.sleep(0)
        return Reply(Message("assistant", "hi"), Tokens([1], [2], [-0.5]))

    worker = RolloutWorker(environment(), bare, group=2)
    worker.update_model_version(3)
    assert [one.model_version for one in taken(worker, 4)] == [3] * 4


def test_a_worker_stops_while_the_trainer_takes_nothing(engine: Engine) -> None:
    worker = RolloutWorker(environment(), engine, group=4, ahead=8)
    worker.start()
    while not worker.rollout_buffer.full():
        time.sleep(0.01)
    worker.check_health(60)
    worker.stop()
    assert worker.rollout_buffer.qsize() == 8
    assert "quintain rollouts" not in [thread.name for thread in threading.enumerate()]


def test_a_worker_that_is_out_of_tasks_is_not_healthy(engine: Engine) -> None:
    env = environment()
    worker = RolloutWorker(env, engine, tasks=env.tasks("train"), group=2)
    worker.start()
    worker._thread.join(60)
    assert worker.rollout_buffer.qsize() == 8
    with pytest.raises(UsageError, match=r"the tasks came to an end.*itertools.cycle"):
        worker.check_health(60)


def test_a_worker_that_is_silent_is_not_healthy() -> None:
    async def asleep(request: Request) -> Reply:
        await asyncio.sleep(60)
        raise AssertionError

    worker = RolloutWorker(environment(), asleep, group=2)
    worker.start()
    time.sleep(0.1)
    worker.check_health(60)
    with pytest.raises(TimeoutError, match="no group was complete for"):
        worker.check_health(0.05)
    worker.stop()
