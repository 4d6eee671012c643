"""Training: what stands between rollouts and a trainer of the field.

curriculum    samplers that choose the next task
advantages    functions from rows to one advantage per token
survival      weights against the bias of failures at certain calls
convert       rows by the field names of eight trainers
engine        draws replies from a model of transformers: continuous batching, weights swapped in flight
endpoint      an engine behind HTTP
trl           episodes for TRL's GRPOTrainer and AsyncGRPOTrainer
control       pause, update and resume of an engine, vLLM and SGLang
stream        rows as JSON lines or MessagePack between processes
pipeline      batches for asynchronous training, with a bound on the lag of each token
queue         the pipeline in a process of its own
ray           the pipeline on several machines
report/       log of a training run, and a report of several runs
"""
