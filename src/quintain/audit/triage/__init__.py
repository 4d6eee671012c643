"""Triage of a finished run: which component is to blame for each episode, and which episodes may be used for training.

`read` finds the episodes, `triage` labels them by eleven ordered rules (`rules`), and the Report gives the usable
episodes, a reading order for reviewers, and the bounds of the failure rate.

reading, episode_log    episodes of this project and of other tools, in one form
evidence                all that a rule may read: the record, its replay and regrading, baselines of its task
siblings, schema        comparison between episodes and with earlier writes; arguments against schemas
rules, labels           eleven ordered rules, and what they say of an episode
signs                   signs over the whole run, and failures that an agent can cause
report                  judgement of the run, and reading order
"""

from .evidence import AuditFinding as AuditFinding
from .labels import Label as Label
from .labels import LabeledEpisode as LabeledEpisode
from .reading import Reading as Reading
from .reading import read as read
from .report import RunReport as RunReport
from .report import triage as triage
