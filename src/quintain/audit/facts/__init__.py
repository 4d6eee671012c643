"""Facts about a subject that checks share, and helpers for plain data.

data                   type guards and differences of plain data
discovery, variations  calls that work, and calls that vary one argument
walks, siblings, acts  solutions with their results and effects, those of like tasks, and the words of acts
fields                 fields of an answer, and other values for them
contracts              names that an author declares, against paths of changes
cuts                   where a parameter cuts a list or moves a date
codes                  plain text inside of encoded text
generate               arguments from JSON schemas and seen values
bounds, histogram      binomial bounds, and rewards that pile up
failure_rate, load     failure rate of episodes, and behaviour under load
"""
