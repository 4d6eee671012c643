"""Training: what stands between rollouts and a trainer of the field.

curriculum    samplers that choose the next task
"""
