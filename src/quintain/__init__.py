"""Reinforcement-learning environments for language agents: E = {T, H, V, S, C}.

Public names, by component; `help(quintain.Task)` shows one:

* E, the environment: Environment, DefinitionError.
* T, tasks: Task, Tasks.
* H, harness: Harness, Session, ToolLoop.
* V, verifier: Verifier, reward, phase, Score, StepView, TurnView, EpisodeView.
* S, state: State, Table, tool, ToolError.
* C, configuration: Config.
* To play: rollout, rollouts, Group, Episode, replay, connect.
* Records: Trace, Reward, Failure, trajectories, Trajectory.

Extensions are in packages of their own, such as `quintain.models`, `quintain.resources` and `quintain.testing`.
"""

from typing import TYPE_CHECKING

from .config import Config as Config
from .environment import Environment as Environment
from .episode import Episode as Episode
from .errors import DefinitionError as DefinitionError
from .errors import Failure as Failure
from .errors import ToolError as ToolError
from .harness import Harness as Harness
from .harness import Session as Session
from .harness import ToolLoop as ToolLoop
from .replay import replay as replay
from .rollout import rollout as rollout
from .rollouts import Group as Group
from .rollouts import rollouts as rollouts
from .serve.client import connect as connect
from .state import State as State
from .table import Table as Table
from .task import Task as Task
from .task import Tasks as Tasks
from .tools import tool as tool
from .trace import Reward as Reward
from .trace import Trace as Trace
from .trajectory import Trajectory as Trajectory
from .trajectory import trajectories as trajectories
from .verifier import EpisodeView as EpisodeView
from .verifier import Score as Score
from .verifier import StepView as StepView
from .verifier import TurnView as TurnView
from .verifier import Verifier as Verifier
from .verifier import phase as phase
from .verifier import reward as reward

__version__ = "0.1.0"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> type:
        """Returns a view class by its name in version 0.1, with a DeprecationWarning; version 0.2 drops the names."""
        renamed = {"Effect": StepView, "Outcome": EpisodeView, "Transition": TurnView}
        if name not in renamed:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import warnings

        warnings.warn(f"quintain.{name} is now quintain.{renamed[name].__name__}", DeprecationWarning, stacklevel=2)
        return renamed[name]
