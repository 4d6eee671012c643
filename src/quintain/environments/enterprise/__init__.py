"""A company of 164 tables and 512 tools over eight departments, made from one description."""

from .environment import env as env
