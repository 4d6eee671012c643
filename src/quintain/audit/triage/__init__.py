"""Triage of a finished run: which component is to blame for each episode, and which episodes may be used for training.

`read` finds the episodes, `triage` labels them by eleven ordered rules (`rules`), and the Report gives the usable
episodes, a reading order for reviewers, and the bounds of the failure rate.
"""

from .case import AuditFinding as AuditFinding
from .labels import Label as Label
from .labels import LabeledEpisode as LabeledEpisode
from .reading import Reading as Reading
from .reading import read as read
from .report import RunReport as RunReport
from .report import triage as triage
