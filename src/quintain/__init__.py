"""Training grounds for language agents: E = {T, H, V, S, C}."""

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
from .verifier import Effect as Effect
from .verifier import Outcome as Outcome
from .verifier import Score as Score
from .verifier import Transition as Transition
from .verifier import Verifier as Verifier
from .verifier import phase as phase
from .verifier import reward as reward

__version__ = "0.1.0"
