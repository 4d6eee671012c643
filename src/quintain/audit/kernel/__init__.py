"""Kernel of the audit: probes, the processes that play them, and findings that prove themselves.

adapter, answers       one form for every subject, and for the answers of its tools
loader                 from a command-line spec to a factory of sessions
probe, player          a short program on a subject as plain data, and its player
worker, wire           worker process that plays probes in forks of itself, and its frames
start_states           states on the wire as differences from the start state of their task
child, pool            parent side of a worker process, and a pool of them
clock_skew             a wall clock that is days ahead
relations, registry    claims about records, and the functions that a finding may name
minimise               the smallest probe for which a claim still holds
finding, replay        findings with all data that replaying them needs
check, context         declaration of a check, and its view of the subject
"""
