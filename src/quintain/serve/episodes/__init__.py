"""Served episodes: their life from creation to verdict, where their work runs, and what clients may read of them."""

__framework__ = True
