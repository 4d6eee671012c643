"""Proof: what environments teach, measured on two CPU cores; `make proof` runs it.

learn      table policy and its learner, for parts b to e
rows       rows of the table, goals, and seeds in parallel
desk       environment of parts a and b
ticket     environment of part c, with eight poisoned twins
ladder     environment of parts d and e
a          a small Llama, trained by TRL
b          dense against sparse rewards
c          poisoned twins
d          asynchronous against synchronous training, in three processes
e          curricula
picture    drawing of the rows
"""
