"""Studio: runs in the browser, as tables of episodes, pages of episodes and groups side by side.

description  `environment.json`: what the record of a run says of its environment
recorder     flight recorder: `live.jsonl`, and the seconds of each turn
watch        replay of a trace that records the changes of each step
player       child process that replays episodes
replays      what each step changed: which environments are imported, the child and its time limit
index        SQLite index of a run, filled in one pass over its traces
search       where a text stands in the traces of a run
cut          lines without their longest texts
finder       search by a regular expression, in a child process
shapes       what failed episodes have in common
columns      the index as typed arrays, which the browser filters and sorts
live         episodes in play
folders      the runs below the folders that were named
reviews      verdicts of people, one file a reviewer
labels       verdicts of programs, such as triage
reports      findings of audits and numbers of trainers
said         labels and findings as columns
taxonomy     modes of failure, as TOML
agreement    how far reviewers agree
samples      episodes that several people review, blind
places       folders in the user's home
compare      two runs, by what their episodes are about
profile      distributions of a task set and its runs
episodes     the run as a table for other programs
spans        the run as OpenTelemetry spans
tokens       texts of the tokens of a turn, by a tokenizer's file
page         built files of the front end, and one episode as an HTML file
inspect_log  the run as a log of Inspect
atif         the run as trajectories of Harbor
sent         episodes as one HTML file, without what must stay here
site         the run as a folder for a static host
notebook     an episode in a frame of a notebook
access       token, keys, hosts and origins that are admitted, headers of answers
app          routes of the JSON API
review_routes  those of reviews, samples and the taxonomy
server       socket, address and uvicorn

The front end is in `web/`; `make web` writes it to `static/`.
"""

__framework__ = True
