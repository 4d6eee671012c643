"""H: the plain tool loop, with the rules of the desk as its system prompt."""

from __future__ import annotations

import quintain as qn

from .policy import POLICY

harness = qn.ToolLoop(system=POLICY)
