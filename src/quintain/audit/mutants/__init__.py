"""Mutation testing of an environment: which small changes of its code leave every score the same?

operators    one small change of a source file: a condition, a constant, a skipped write
loading      runs the changed text in a child process, and records the two values of a mutated expression
reach        lines that the verifier runs and lines that the tools run, in known episodes
battery      those episodes: solutions, parts of them, and solutions with further calls
judging      result of each mutant: killed, survived or silent
checks       survivors as findings: requirements that the verifier does not check

After DeMillo, Lipton and Sayward, "Hints on test data selection", 1978. The difference that a reported survivor must
show is the infected state of Howden's "Weak mutation testing", 1982.
"""
