"""The tools, by area; each area is usable alone on a database with the same tables."""
