"""Time at scale: a calendar beside a slow reference, and worlds that are cut, copied and shipped on their way."""
