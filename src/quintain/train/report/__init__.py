"""Training report: curves over seeds, invalid episodes, selection bias, staleness and the sampler's picture.

counts  sums over episodes that add up
log     `training.jsonl`: one line per update of one run
curves  one report of several runs, with intervals over them
export  files for TensorBoard and Weights & Biases
"""

from .counts import Counts as Counts
from .curves import TrainingReport as TrainingReport
from .curves import report as report
from .curves import scalars as scalars
from .log import TrainingLog as TrainingLog
from .log import Update as Update
from .log import read_updates as read_updates
