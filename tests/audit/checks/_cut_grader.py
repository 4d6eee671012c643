"""Grades what `_cut_subjects.Files` wrote; a module of its own, so that a tool can aim at it."""

from __future__ import annotations

from pathlib import Path


def grade(folder: Path) -> float:
    written = folder / "out.txt"
    return float(written.is_file() and written.read_text() == "hello")
