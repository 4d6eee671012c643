"""Fetches and makes what the pairs of released versions need: once on a machine, with a network, about two minutes."""

from __future__ import annotations

from .installed import install_all
from .subjects import knight_swap_after, knight_swap_before

if __name__ == "__main__":
    install_all()
    for make in (knight_swap_before, knight_swap_after):
        print(f"{len(make().tasks())} puzzles of {make.__name__}")
