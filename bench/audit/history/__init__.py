"""Bugs that published environments and graders had, each as a faulty and a fixed subject.

Some pairs are two published versions of a package (`needs_install`; `installed.py` fetches them). The others are small
reconstructions from the projects' issues and pull requests; "fixed" means fixed as the project did it, or, for an open
issue, as the issue requests.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent
_GITHUB = "https://github.com/"


class Pair(NamedTuple):
    """A bug and its fix."""

    name: str
    klass: str
    """The slug of the class that names it best."""
    part: str
    """The letter to blame: T, H, V, S or C."""
    source: str
    """Address of the public report."""
    story: str
    before: str
    """The spec of the subject with the bug: path/to/file.py:factory, or :scorer where there are cases."""
    after: str
    needs_install: bool = False
    also: tuple[str, ...] = ()
    """Other classes that name the same bug with as much right."""
    cases: str = ""
    """The file of cases, for a scorer."""


def _rebuilt(spec: str, after: str = "") -> tuple[str, str]:
    """Specs of a rebuilt pair: "file:name" stands for name_before and name_after."""
    file, _, name = spec.partition(":")
    return f"{_HERE / file}.py:{name}_before", f"{_HERE / file}.py:{after or f'{name}_after'}"


def _released(name: str) -> tuple[str, str]:
    return _rebuilt(f"subjects:{name}")


def _cases(name: str) -> str:
    return str(_HERE / "cases" / f"{name}.jsonl")


RELEASED = (
    Pair(
        "gymnasium-cartpole-steps", "reset_leak", "S", f"{_GITHUB}Farama-Foundation/Gymnasium/issues/885",
        "Until 0.29.1 the vectorised CartPole keeps its step counter at a reset, so that the steps of the previous "
        "episode cut the next one short. Fixed in 1.0.0 by pull request 886.",
        *_released("cartpole"), needs_install=True,
    ),
    Pair(
        "reasoning-gym-bf-substring", "reward_hack", "V", f"{_GITHUB}open-thought/reasoning-gym/pull/418",
        "The scorer of the Brainfuck dataset pays an answer that merely contains the right word, and the more, the "
        "longer the answer is: rewards above 5. Fixed in 0.1.19.",
        *_released("bf"), needs_install=True, also=("reward_clipping",),
    ),
    Pair(
        "reasoning-gym-countdown-target", "reward_hack", "V", f"{_GITHUB}open-thought/reasoning-gym/pull/265",
        "An expression that equals the target is paid whatever its numbers: the target alone, copied from the "
        "question, is worth 1. The scorer of 0.1.18 demands the given numbers.",
        *_released("countdown"), needs_install=True, also=("unsolvable",),
    ),
    Pair(
        "reasoning-gym-pool-matrix-gold", "unsolvable", "V", f"{_GITHUB}open-thought/reasoning-gym/pull/215",
        "The scorer compares two texts as if they were matrices, fails, and swallows it: every answer is worth 0, the "
        "dataset's own too. Fixed in 0.1.12.",
        *_released("pool_matrix"), needs_install=True, also=("silent_default",),
    ),
    Pair(
        "reasoning-gym-graph-color-crash", "races", "V",
        f"{_GITHUB}open-thought/reasoning-gym/commit/f9e8f8b0",
        "An answer that is not JSON brings the scorer down instead of earning nothing. Fixed in 0.1.12.",
        *_released("graph_color"), needs_install=True,
    ),
    Pair(
        "reasoning-gym-power-spelling", "flaky_verifier", "V", f"{_GITHUB}open-thought/reasoning-gym/pull/462",
        "Three significant figures are compared as text, and the text keeps the zeros of the spelling: 1 and 1.00 are "
        "not 1.0. Fixed in 0.1.23.",
        *_released("power_function"), needs_install=True, also=("unsolvable", "reward_clipping"),
    ),
    Pair(
        "reasoning-gym-knight-swap-ratio", "data_realism", "T", f"{_GITHUB}open-thought/reasoning-gym/pull/524",
        "The dataset declares 20 % impossible puzzles, but draws anew at each attempt, and attempts at possible ones "
        "fail more often: about half are impossible. Fixed in 0.1.25.",
        *_released("knight_swap"), needs_install=True,
    ),
    Pair(
        "reasoning-gym-cryptarithm-solutions", "unsolvable", "V", f"{_GITHUB}open-thought/reasoning-gym/pull/517",
        "A puzzle may have several solutions, but only the stored one is paid; wrong ones near it earn more than other "
        "right ones. Fixed in 0.1.25.",
        *_released("cryptarithm"), needs_install=True, cases=_cases("cryptarithm"),
        also=("flaky_verifier", "reward_clipping", "reward_hack"),
    ),
    Pair(
        "math-verify-threads", "flaky_verifier", "V", f"{_GITHUB}huggingface/Math-Verify/commit/a585003",
        "Outside the main thread the alarm that limits the time cannot be set; 0.7.0 swallows that and finds every "
        "answer wrong. 0.8.0 says so, and offers to go without.",
        *_released("math_verify"), needs_install=True, cases=_cases("math_verify"), also=("races", "silent_default"),
    ),
)  # fmt: skip

REBUILT = (
    Pair(
        "tau2-number-spelling", "flaky_verifier", "V", f"{_GITHUB}sierra-research/tau2-bench/pull/397",
        "An amount is stored as the agent spelled it and goes into an id: 33 and 33.0 leave different databases, and "
        "only one of them is paid.",
        *_rebuilt("bank:spelling", "sound"), also=("unsolvable",),
    ),
    Pair(
        "tau2-extra-reads", "unsolvable", "V", f"{_GITHUB}sierra-research/tau2-bench/pull/329",
        "Each lookup is written to the database that is compared, so that looking once more than the solution does "
        "costs the whole reward.",
        *_rebuilt("bank:extra_reads", "sound"), also=("flaky_verifier",),
    ),
    Pair(
        "tau2-blind-gold", "unsolvable", "T", f"{_GITHUB}sierra-research/tau2-bench/pull/402",
        "The solution freezes a card whose number it never looked up; an agent must look it up, and that lookup is "
        "held against it.",
        *_rebuilt("bank:blind_gold", "sound"), also=("flaky_verifier",),
    ),
    Pair(
        "tau2-order", "action_drift", "S", f"{_GITHUB}sierra-research/tau2-bench/pull/403",
        "A tool promises the most recent transaction first and returns the stored order, the oldest first.",
        *_rebuilt("bank:order", "sound"),
    ),
    Pair(
        "tau2-hallucinated-tool", "races", "V", f"{_GITHUB}sierra-research/tau2-bench/pull/273",
        "The desk answers an unknown tool with an error and goes on, but the judge replays the calls and breaks at it: "
        "an episode that the agent spoiled is booked as a failure of the infrastructure.",
        *_rebuilt("bank:replay", "sound"), also=("reward_hack",),
    ),
    Pair(
        "tau2-withheld-tool", "unsolvable", "T", f"{_GITHUB}sierra-research/tau2-bench/commit/380c03f",
        "A task's solution needs a tool that the task does not offer.",
        *_rebuilt("bank:withheld_tool", "sound"), also=("action_drift",),
    ),
    Pair(
        "tau2-idle-pays", "unsolvable", "T", f"{_GITHUB}sierra-research/tau2-bench/issues/384",
        "Where the right thing is to refuse and hand over, only an unchanged database is asked for: doing nothing at "
        "all is paid.",
        *_rebuilt("bank:idle", "sound"), also=("false_resolution", "reward_hack"),
    ),
    Pair(
        "verifiers-lean-exit-code", "reward_hack", "V", f"{_GITHUB}PrimeIntellect-ai/verifiers/pull/1480",
        "The first exit code in the checker's output counts, and the proof itself can have one printed.",
        *_rebuilt("graders:exit_code"),
    ),
    Pair(
        "kernelbench-zeros", "reward_hack", "V", f"{_GITHUB}ScalingIntelligence/KernelBench/issues/165",
        "Outputs are compared with an absolute tolerance of 0.01; where all outputs are smaller, a kernel that "
        "writes zeros is right.",
        *_rebuilt("graders:tolerance"), also=("reward_clipping",),
    ),
    Pair(
        "verifiers-math-queue", "races", "V", f"{_GITHUB}PrimeIntellect-ai/verifiers/pull/831",
        "The time limit of a comparison also counts the wait for a free worker: under load, right answers are worth 0.",
        *_rebuilt("graders:queue"), also=("flaky_verifier", "silent_default"),
    ),
    Pair(
        "harbor-partial-mean", "reward_hack", "V", f"{_GITHUB}harbor-framework/harbor/issues/2783",
        "The reward is the mean over the checkpoints that ran, so that stopping while ahead beats going on.",
        *_rebuilt("graders:partial_mean"), also=("reward_clipping", "false_resolution"),
    ),
    Pair(
        "cap-evolve-ungraded", "silent_default", "V", f"{_GITHUB}skillberry-ai/cap-evolve/pull/309",
        "When the grader itself breaks, the trial enters the mean with a reward of 0 as if it had been judged.",
        *_rebuilt("graders:ungraded"),
    ),
    Pair(
        "cookbook-unparsed-gold", "silent_default", "V", f"{_GITHUB}huggingface/cookbook/issues/335",
        "Where the reference does not parse, every completion is worth 1.",
        *_rebuilt("graders:reference"), cases=_cases("reference"), also=("reward_hack",),
    ),
    Pair(
        "nemo-evaluator-unreadable-judge", "judge", "V", f"{_GITHUB}NVIDIA-NeMo/Evaluator/pull/1094",
        "A judge's reply that holds no verdict becomes the lowest mark.",
        *_rebuilt("judges:unreadable"), also=("silent_default",),
    ),
    Pair(
        "evalscope-generous-judge", "judge", "V", f"{_GITHUB}modelscope/evalscope/issues/1575",
        "Any number in the judge's reply is its mark, cut to 1: a mark of 90, or a digit in an error message, is full "
        "marks.",
        *_rebuilt("judges:generous"), also=("silent_default",),
    ),
    Pair(
        "openenv-textarena-seed", "reset_leak", "S", f"{_GITHUB}huggingface/OpenEnv/issues/1102",
        "`reset` takes a seed and does not pass it on: the same seed gives another secret word each time.",
        *_rebuilt("worlds:seed"), also=("silent_default",),
    ),
    Pair(
        "kaggle-default-lists", "reset_leak", "S", f"{_GITHUB}Kaggle/kaggle-environments/issues/156",
        "The lists of steps and logs are default arguments, hence the same lists in all instances.",
        *_rebuilt("worlds:default_list"), also=("races",),
    ),
    Pair(
        "swe-bench-future-commits", "leak", "S", f"{_GITHUB}SWE-bench/SWE-bench/issues/465",
        "The task's repository holds the commits after the one it stands at, the fix among them.",
        *_rebuilt("worlds:future"),
    ),
    Pair(
        "cloudai-result-cache", "stale_cache", "S", f"{_GITHUB}NVIDIA/cloudai/pull/901",
        "Measured results are kept by the action alone; the conditions that an episode drew are not in the key, and "
        "another episode's results come back.",
        *_rebuilt("worlds:sweep"), also=("reset_leak",),
    ),
    Pair(
        "nemo-gym-filing-cache", "stale_cache", "S", f"{_GITHUB}NVIDIA-NeMo/Gym/pull/2097",
        "Fetched documents are kept by their filing's number: the second document of a filing is the first again.",
        *_rebuilt("worlds:filings"), also=("reset_leak",),
    ),
)  # fmt: skip

PAIRS = (*RELEASED, *REBUILT)
