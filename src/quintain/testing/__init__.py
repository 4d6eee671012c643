"""For authors: contracts to inherit, strategies for Hypothesis (in `quintain.testing.strategies`), small fakes.

Contracts are classes of tests. Subclass one, say what it is about, and pytest finds the tests.
"""

from .environment import EnvironmentContract as EnvironmentContract
from .fakes import Bank as Bank
from .fakes import Counter as Counter
from .fakes import Script as Script
from .fakes import bank as bank
from .fakes import counter as counter
from .resource import ResourceContract as ResourceContract
