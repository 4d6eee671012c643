"""An incident desk: find the root cause of a failure in a simulated production, repair it, and report it."""

from .environment import env as env
from .environment import make as make
from .hierarchy import RoutedOracle as RoutedOracle
from .hierarchy import inner_traces as inner_traces
