"""Models answer requests; agents bring a model to each task, and are registered from `quintain.models.agents`."""

from quintain.replay import ReplayModel as ReplayModel

from .agents import Company as Company
from .agents import Fixed as Fixed
from .agents import Oracle as Oracle
from .baselines import Noop as Noop
from .baselines import Random as Random
from .cast import Cast as Cast
from .openai import OpenAI as OpenAI
from .scripted import Scripted as Scripted
