"""TRL: episodes of an environment for `GRPOTrainer` and `AsyncGRPOTrainer`, in a few lines of the user's.

Both get the rows of `quintain.trajectories` by the names of `quintain.train.convert`. A failed episode, and a group in
which too many failed, has no score: it is in no baseline and gets no gradient. Tried with TRL 1.16, in one process.

RolloutFunc       `GRPOTrainer(rollout_func=RolloutFunc(env), reward_funcs=score)`; prompts are ids of tasks
RolloutWorker     `AsyncGRPOTrainer(rollout_worker=RolloutWorker(env, model))`
WeightTransfer    `AsyncGRPOTrainer(weight_transfer=WeightTransfer(engine))`
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic

import msgspec

from quintain import Trajectory, rollouts, trajectories
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Model, Request
from quintain.plugins import package
from quintain.rollouts import Draw, Group
from quintain.state import S
from quintain.task import Task
from quintain.trace import Reply

from .advantages import PerToken, Rows
from .control import Controlled
from .convert import columns, convert
from .curriculum import Sampler
from .engine import Engine
from .report.log import TrainingLog


class RolloutFunc(Generic[S]):
    """Function for `GRPOTrainer(rollout_func=)` that plays the tasks whose ids are the prompts.

    The trainer repeats each prompt; the repetitions are one group. Of an episode whose context was rewritten, TRL can
    take only one row: the one with the last turn. Each group has another seed, so a task is never played twice alike.

    Args:
        env: The environment. Its configuration must have the trainer's temperature.
        model: What plays; by default an `Engine` on the trainer's own model.
        split: Split of the tasks.
        control: Where a `model` of your own gets the weights from, at the first episode of each optimizer step.
        log: Log that gets a line each time that groups are played for training, with loss, gradient norm and learning
            rate that the trainer logged last. One that is not finite ends the training.
    """

    def __init__(
        self,
        env: Environment[S],
        model: Model | None = None,
        *,
        split: str = "train",
        control: Controlled | None = None,
        log: TrainingLog | None = None,
    ) -> None:
        self._env, self._model, self._split, self._control, self._log = env, model, split, control, log
        self._played, self._step = 0, -1

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Returns one row per prompt, as columns.

        Raises:
            UsageError: A prompt is not the id of a task, a group is not whole, or the temperatures differ.
        """
        if trainer.args.temperature != self._env.config.temperature:
            raise UsageError(
                f"the trainer's temperature is {trainer.args.temperature}, the environment's "
                f"{self._env.config.temperature}; set GRPOConfig(temperature=) to that of env.config"
            )
        network = trainer.accelerator.unwrap_model(trainer.model)
        is_training = network.training
        size = trainer.num_generations if is_training else trainer.num_generations_eval
        draws = [Draw(task, self._seed(trainer)) for task in self._tasks(prompts, size)]
        self._publish(network, trainer)
        network.eval()
        try:
            groups = asyncio.run(self._play(draws, size))
        finally:
            network.train(is_training)
        if self._log is not None and is_training:
            self._log.update(groups, step=int(trainer.state.global_step), metrics=_numbers(trainer))
        rows = [row for group in groups for row in _one_per_episode(group)]
        end = trainer.processing_class.eos_token_id
        empty = {"prompt_ids": [end], "completion_ids": [end], "logprobs": [0.0], "env_mask": [0], "score": None}
        found = iter(convert([row for row in rows if row is not None], "trl"))
        return columns([empty if row is None else next(found) for row in rows])

    def _seed(self, trainer: Any) -> int:
        self._played += 1
        return int(trainer.accelerator.process_index) * 2**32 + self._played

    def _tasks(self, prompts: Sequence[Any], size: int) -> list[Task[S]]:
        found: list[Task[S]] = []
        for prompt, repeated in itertools.groupby(prompts):
            groups, rest = divmod(len(list(repeated)), size)
            if rest:
                raise UsageError(
                    f"prompt {prompt!r} comes {groups * size + rest} times in a row, and a group has {size}; make "
                    "per_device_train_batch_size * steps_per_generation a multiple of num_generations"
                )
            found += [self._env.task(self._split, prompt)] * groups
        return found

    def _publish(self, network: Any, trainer: Any) -> None:
        """Gives the weights of this optimizer step to what plays."""
        step = int(trainer.state.global_step)
        if self._model is None:
            self._model = self._control = Engine(network, trainer.processing_class)
        if self._control is None or step == self._step:
            return
        is_shared = isinstance(self._model, Engine) and self._model.network is network
        self._step = step
        self._control.pause()
        self._control.update({} if is_shared else dict(network.named_parameters()), step)
        self._control.resume()

    async def _play(self, draws: Sequence[Draw[S]], size: int) -> list[Group]:
        assert self._model is not None
        async with _closing(self._model) as model:
            return [group async for group in rollouts(self._env, model, draws, group=size, ordered=True)]


@contextlib.asynccontextmanager
async def _closing(model: Model) -> AsyncGenerator[Model]:
    """Closes the model's connections, which belong to the running event loop."""
    try:
        yield model
    finally:
        if close := getattr(model, "aclose", None):
            await close()


def score(
    *,
    score: list[float | None],
    log_metric: Callable[[str, float], None],
    **columns: Any,  # noqa: ARG001
) -> list[float | None]:
    """Returns the scores of the episodes, for `GRPOTrainer(reward_funcs=)`; logs the share of those without one.

    Args:
        score: One per episode, None for one that failed.
        log_metric: Function of the trainer.
        columns: Further columns that the trainer passes, which are not used.
    """
    log_metric("episodes/without_score", sum(one is None for one in score) / len(score))
    return score


def _numbers(trainer: Any) -> dict[str, float]:
    """Returns the optimizer's numbers that the trainer logged last; a mean of rewards may be NaN, these may not."""
    history: list[dict[str, Any]] = trainer.state.log_history
    names = ("loss", "grad_norm", "learning_rate")
    return {name: float(last[name]) for last in history[-1:] for name in names if name in last}


def _one_per_episode(group: Group) -> list[Trajectory | None]:
    rows = {row.member: row for row in trajectories(group.traces) if row.last and any(row.mask)}
    return [rows.get(member) for member in range(len(group.rollouts))]


class RolloutWorker(Generic[S]):
    """Worker for `AsyncGRPOTrainer(rollout_worker=)`: plays in a thread, and queues rows with their advantage.

    Args:
        env: The environment. Its configuration must have the trainer's temperature.
        model: What plays, such as an `Engine` or `OpenAI(name, base_url=URL, tokens=True)`. A reply without versions
            has the one that was live when it was asked for.
        tasks: Tasks or a sampler, without end; by default all of the split "train", in another order in each pass.
        group: Episodes per task.
        ahead: Most episodes in groups that are begun and not in the queue, and most rows in the queue; by default four
            groups. Rows older than the trainer's `max_staleness` are dropped there, so many of them are a waste.
        advantages: Function of `quintain.train.advantages` with one value per episode; by default `row.advantage`.
        log: Log that gets a line for each version of the weights, with the groups that were played since the one
            before. Rows that the trainer drops later count as trained.

    Attributes:
        rollout_buffer: Queue of `RolloutSample`.
        metrics_queue: Queue of what the trainer logs.
    """

    def __init__(
        self,
        env: Environment[S],
        model: Model,
        *,
        tasks: Iterable[Task[S] | Draw[S]] | None = None,
        group: int = 8,
        ahead: int | None = None,
        advantages: Callable[[Rows], PerToken] | None = None,
        log: TrainingLog | None = None,
    ) -> None:
        self._log, self._logged = log, queue.SimpleQueue[Group]()
        self._tasks = Sampler(env.tasks("train")) if tasks is None else tasks
        self._env, self._model, self._group, self._advantages = env, model, group, advantages
        self._ahead = 4 * group if ahead is None else ahead
        self.rollout_buffer: queue.Queue[Any] = queue.Queue(self._ahead)
        self.metrics_queue: queue.Queue[Mapping[str, Any]] = queue.Queue()
        self._version = 0
        self._seen_s = time.monotonic()
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quintain rollouts", daemon=True)

    def start(self) -> None:
        """Begins to play."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the episodes in play, and the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def update_model_version(self, model_version: int) -> None:
        """Notes the version that is live, and logs the groups that were played before."""
        self._version = model_version
        if self._log is not None:
            groups = [self._logged.get() for _ in range(self._logged.qsize())]
            self._log.update(groups, step=model_version)

    def check_health(self, stale_after_s: float) -> None:
        """Raises the error that ended the play, such as RunStopped, or a TimeoutError if no group came for so long."""
        if self._error is not None:
            raise self._error
        if (silent_s := time.monotonic() - self._seen_s) > stale_after_s:
            raise TimeoutError(f"no group was complete for {silent_s:.0f} s; see the environment's limits")

    def _run(self) -> None:
        try:
            asyncio.run(self._until_stopped())
        except BaseException as error:  # noqa: BLE001  # Handed to the trainer, by check_health.
            self._error = error

    async def _until_stopped(self) -> None:
        play = asyncio.create_task(self._play())
        while not play.done() and not self._stopping.is_set():
            await asyncio.wait([play], timeout=0.05)
        play.cancel()
        async with _closing(self._model):
            with contextlib.suppress(asyncio.CancelledError):
                await play

    async def _play(self) -> None:
        make = package("trl.experimental.async_grpo.async_rollout_worker", extra="trl").RolloutSample
        array = package("numpy", extra="trl").array
        async for group in rollouts(self._env, self._ask, self._tasks, group=self._group, ahead=self._ahead):
            self._seen_s = time.monotonic()
            if self._log is not None:
                self._logged.put(group)
            failed = sum(trace.score is None for trace in group.traces)
            self.metrics_queue.put({"episodes/without_score": (failed, len(group.rollouts))})
            rows = [row for row in trajectories(group.traces) if any(row.mask)]
            values = self._advantages(rows) if self._advantages else None
            for fields in convert(rows, "trl_async", advantages=values):
                for name, kind in (("input_ids", "int64"), ("completion_mask", "int64"), ("old_log_probs", "float32")):
                    fields[name] = array(fields[name], kind)
                while self.rollout_buffer.full():
                    await asyncio.sleep(0.01)
                    self._seen_s = time.monotonic()  # It is the trainer that is slow.
                self.rollout_buffer.put_nowait(make(**fields, enqueued_at=time.time()))
        raise UsageError("the tasks came to an end before the training; give a sampler, or itertools.cycle(tasks)")

    async def _ask(self, request: Request) -> Reply:
        version = self._version
        reply = await self._model(request)
        return reply if reply.policy_version is not None else msgspec.structs.replace(reply, policy_version=version)


class WeightTransfer:
    """Transfer for `AsyncGRPOTrainer(weight_transfer=)`: gives all weights to an engine, or to one that is served.

    To vLLM, TRL transfers the weights itself: leave `weight_transfer` out.

    Args:
        control: An `Engine`, or a `Control` of one.
    """

    def __init__(self, control: Controlled) -> None:
        self._control, self._version = control, 0

    def init_weight_transfer(self) -> None:
        """Does nothing: the transfer needs no preparation."""

    def pause(self) -> None:
        """Stops drawing before the weights are replaced."""
        self._control.pause()

    def send_weights(self, iterator: Iterator[tuple[str, Any]]) -> None:
        """Replaces the weights; counts the versions as the trainer does, from 1."""
        self._version += 1
        self._control.update(dict(iterator), self._version)

    def resume(self) -> None:
        """Goes on drawing."""
        self._control.resume()

    def destroy(self) -> None:
        """Does nothing: the engine belongs to the caller."""
