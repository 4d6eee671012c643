"""Kernel of the audit: probes, the processes that play them, and findings that prove themselves.

adapter, answers       one form for every subject, and for the answers of its tools
loader                 from a command-line spec to a factory of sessions
probe, player          a short program on a subject as plain data, and its player
worker, wire           worker process that plays probes in forks of itself; its frames, and states in them
child                  parent side of worker processes, and a pool of them
clock_skew             a wall clock that is days ahead
relations, registry    claims about records, and the functions that a finding may name
finding, replay        findings with all data that replaying them needs
check, context         declaration of a check; its view of the subject, minimising and proof
"""
