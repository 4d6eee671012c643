"""Checks whether an agent's tool writes the files that judge it, on a copy of the subject.

Whatever a tool offers to write, and whatever code it offers to run, is aimed at every file of the copy. A file that is
another one afterwards, and is loaded code or was read by the verdict, is a verifier that its own agent can rewrite.
"""

from __future__ import annotations

PATHS = frozenset(("path", "file", "filename", "filepath", "target", "dest", "destination"))
TEXTS = frozenset(("content", "contents", "text", "data", "body", "source", "code", "value"))


# --- in the child ---
