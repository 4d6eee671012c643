"""Ready-made criteria, which compare an agent's answer with the truth of its task."""

from .answers import exact as exact
from .answers import final_answer as final_answer
from .answers import last_number as last_number
from .answers import numeric as numeric
