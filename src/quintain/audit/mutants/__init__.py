"""Mutation testing of an environment: change one thing in it, and see whether anybody is paid differently.

operators    one small change of a source file: a condition, a constant, a write that is skipped
loading      the changed text runs in a child process; the author's file is never touched
reach        which lines the verifier runs, which the tools run, in episodes that are known
battery      those episodes: solutions, parts of them, solutions with something beside them
judging      what became of each mutant: killed, survived, or nothing can be said
checks       survivors are requirements that nobody checks

After DeMillo, Lipton and Sayward, "Hints on test data selection", 1978; what must differ before a survivor is reported
is the infected state of Howden's "Weak mutation testing", 1982.
"""
