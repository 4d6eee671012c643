"""Training: what stands between rollouts and a trainer of the field.

curriculum    samplers that choose the next task
advantages    functions from rows to one advantage per token
convert       rows by the field names of eight trainers
stream        rows as JSON lines or MessagePack between processes
report/       log of a training run, and a report of several runs
"""
