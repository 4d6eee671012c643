"""S: the company's world. Its 512 tools are those of `Desk` and one for each action of the description."""

from __future__ import annotations

from .desk import Desk
from .tools import enterprise

Enterprise: type[Desk] = enterprise()
