"""Triage of a finished run: whose fault each episode was, and which of them may be trained on.

`read` finds the episodes, `triage` files them by eleven ordered rules (`rules`), and the Report says what of the run
may be used, what a reviewer should read first, and how sure the failure rate is.
"""

from .case import Finding as Finding
from .labels import Judged as Judged
from .labels import Label as Label
from .reading import Reading as Reading
from .reading import read as read
from .report import Report as Report
from .report import triage as triage
