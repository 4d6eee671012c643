"""Triage of a finished run: which component is to blame for each episode, and which episodes may be used for training.

`read` finds the episodes, `triage` labels them by eleven ordered rules (`rules`), and the Report gives the usable
episodes, a reading order for reviewers, and the bounds of the failure rate.

reading, foreign, episode_log, plain    episodes of this project and of other tools, in one form
case, evidence          all that a rule may read: the record, its replay and regrading
rules/                  eleven ordered rules
labels, report, review  labels of episodes, judgement of the run, reading order
baselines, provoked     scores of solutions and of inaction; failures that an agent can cause
schema, shadow          arguments against schemas, reads against earlier writes
siblings, signs         comparison between episodes, and signs over the whole run
"""

from .case import AuditFinding as AuditFinding
from .labels import Label as Label
from .labels import LabeledEpisode as LabeledEpisode
from .reading import Reading as Reading
from .reading import read as read
from .report import RunReport as RunReport
from .report import triage as triage
