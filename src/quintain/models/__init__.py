"""Models answer requests; an agent brings a model to each task.

agents              functions registered as `quintain.models` plugins: one agent for each name after `--agent`
openai, endpoint    OpenAI-compatible endpoints: requests and retries; failures of HTTP
wire                JSON of chat completions: messages to requests, and answers to replies with tool calls
scripted            replies that are known beforehand, such as an oracle's
baselines           agents that do nothing, or anything
drawing, patterns   random values of a JSON schema, random text of a regular expression
cast                several models in one episode, and a user who only lets the agent act
"""

from quintain.replay import ReplayModel as ReplayModel

from .agents import Company as Company
from .agents import Fixed as Fixed
from .agents import Oracle as Oracle
from .baselines import Noop as Noop
from .baselines import Random as Random
from .cast import Cast as Cast
from .openai import OpenAI as OpenAI
from .scripted import Scripted as Scripted
