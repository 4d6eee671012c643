"""The supervisor: a small clean process that starts sandboxes, watches them, and leaves nothing behind.

It is started with an empty environment and no descriptor but its socket, before or after secrets were loaded by the
process that starts it: nothing of that process can be read in it. These modules use the standard library alone, since
the supervisor has no other; see `loop.py` for what it understands.
"""
