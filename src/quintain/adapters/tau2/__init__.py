"""Tau2-bench's domains retail, airline, telecom and banking: the real tasks, scored as the reference does.

Databases, tasks and policies come from a folder of the user's (github.com/sierra-research/tau2-bench, `data/tau2`).
"""

from .conform import Report as Report
from .conform import conform as conform
from .environment import load as load
