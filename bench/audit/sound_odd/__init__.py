"""Sound environments whose designs are unusual, and documented."""
