"""Training: what stands between rollouts and a trainer of the field.

curriculum    samplers that choose the next task
advantages    functions from rows to one advantage per token
convert       rows by the field names of eight trainers
stream        rows as JSON lines or MessagePack between processes
pipeline      batches for asynchronous training, with a bound on the lag of each token
queue         the pipeline in a process of its own
ray           the pipeline on several machines
"""
