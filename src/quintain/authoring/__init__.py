"""Kit for environments with generated tasks, which the built-in environments are made with.

`Draft` writes a task together with its solution, and `generated` makes the tasks of a split. `Checklist` evaluates the
goals of a task, `changed_fields` lists the changes of an episode, and `Breaches` and the other functions score.
"""

from .changes import FieldChange as FieldChange
from .changes import changed_fields as changed_fields
from .changes import unexplained as unexplained
from .drafts import LEVELS as LEVELS
from .drafts import Draft as Draft
from .drafts import Level as Level
from .drafts import generated as generated
from .drafts import key_of as key_of
from .goals import Checklist as Checklist
from .goals import FieldGoal as FieldGoal
from .goals import Goal as Goal
from .goals import TaskGoal as TaskGoal
from .memory import Recent as Recent
from .memory import by_content as by_content
from .memory import content_of as content_of
from .memory import per_task as per_task
from .scores import Breaches as Breaches
from .scores import lawful as lawful
from .scores import lawful_step as lawful_step
from .scores import sound_call as sound_call
from .scores import squared as squared
from .scores import untouched as untouched
