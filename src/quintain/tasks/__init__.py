"""Tasks from data: rows in memory, and JSONL, CSV and Parquet files, each with a prompt and an answer."""

from .rows import Question as Question
from .rows import from_file as from_file
from .rows import from_rows as from_rows
from .rows import read_rows as read_rows
