"""Harnesses beyond the basic loops: protocols, context management, and tools that a harness or a world holds.

loop        `SingleTurn`, `AgentLoop` and `agentic`
dialogue    `Dialogue`, in which the agent and a simulated user talk
strategies  `KeepRecent`, `Rebuild`, `Summarise` and `Fold`
folding     the conditions under which a summary is accepted
budget      the context as a strategy sees it, and how it is made to fit
sources     tool results under content-addressed ids, and the tool `recall`
held        tools that a harness holds outside of the world
tools       to-do list, notes, sections, final answer, skills, questions to the user
mcp         `Mcp`, tools and resources of MCP servers
corpus      search and fetch over pages of the world
subagents   the tool `task`, which runs an inner harness on the same world
text_tools  tool calls as text, for models without native ones
"""

from .budget import View as View
from .budget import quarter as quarter
from .corpus import Corpus as Corpus
from .corpus import CorpusTools as CorpusTools
from .corpus import Page as Page
from .dialogue import Dialogue as Dialogue
from .folding import broken_conditions as broken_conditions
from .loop import AgentLoop as AgentLoop
from .loop import SingleTurn as SingleTurn
from .loop import agentic as agentic
from .sources import Sources as Sources
from .strategies import Fold as Fold
from .strategies import KeepRecent as KeepRecent
from .strategies import Rebuild as Rebuild
from .strategies import Strategy as Strategy
from .strategies import Summarise as Summarise
from .subagents import Subagent as Subagent
from .subagents import delegations as delegations
from .text_tools import TextTools as TextTools
from .tools import AnswerTools as AnswerTools
from .tools import AskUser as AskUser
from .tools import FinalAnswer as FinalAnswer
from .tools import Notes as Notes
from .tools import NotesTools as NotesTools
from .tools import Sections as Sections
from .tools import SectionsTools as SectionsTools
from .tools import Skills as Skills
from .tools import SkillsTools as SkillsTools
from .tools import Todo as Todo
from .tools import TodoTools as TodoTools
