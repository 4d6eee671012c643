"""The audit: would this environment teach a model the wrong thing? It finds out by itself, and proves it.

opening, handle      a subject, of whatever kind, in one form
probe, player        a short program on it, as plain data, and who plays it
worker, child, wire  in a process that can be killed
relations, proof     what a few probes saw makes a claim; two fresh processes and delta debugging make a finding
survey, lab          what is known of the subject, and what a check is given
check, checks/       one file for each of the thirteen classes
auditor, report/     in the order of their worth, into a table, JSON, a page and a certificate
triage/              the same question for the traces of a run
"""
