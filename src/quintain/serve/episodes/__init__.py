"""Served episodes: their life from creation to verdict, where their work runs, and what clients may read of them.

host                      the environments, and all open episodes
live                      one episode: its calls, each made once, and its verdict
recovered_episode         an episode that a killed server left, replayed from the journal
executor                  threads, time limits and the watchdog
harness_run               the environment's harness, suspended at each question to the agent
actions                   actions of a client-side harness
views, task_lists         what clients read of episodes and tasks
secrets, request_secrets  secrets of an episode, and of a request
size                      limit on the bytes of an episode
archive                   records in run folders
"""

__framework__ = True
