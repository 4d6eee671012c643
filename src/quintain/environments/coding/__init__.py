"""Programming in small repositories: repair reported defects, review changes, and complete functions."""

from .environment import env as env
from .environment import make as make
