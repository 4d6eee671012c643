"""Audit: would this environment teach a model the wrong thing? Each error is proven by a replayable finding.

auditor     runs checks on a subject and returns a report
advisor     language model that proposes probes and suspicions
claims      claims that an advisor may name, with their controls
traces      the same question for a folder of traces, without the environment
kernel/     probes, worker processes, relations, findings, and the context of a check
facts/      facts about the subject that checks share: discovery, variations, failure rate
subjects/   adapters for other kinds of environments
checks/     checks of the thirteen classes
mutants/    mutation testing of environments, the checks of `--mutate`
report/     reports as JSON, HTML and certificate
triage/     labels for the episodes of a finished run
"""
