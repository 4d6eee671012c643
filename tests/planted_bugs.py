"""Planted bugs of the serving and resource layers: what tests/mutation.py changes, and which tests must see it.

Each row is (file below src/quintain, old text, new text, tests). The old text stands once in its file.
"""

from __future__ import annotations

DOOR = ("tests/serve/operation/test_door.py",)
KEYS = ("tests/serve/operation/test_keys.py",)
LIMITS = ("tests/serve/operation/test_limits.py", "tests/serve/openenv/test_limits.py")
ONCE = ("tests/serve/control/test_once.py",)
SECRETS = ("tests/serve/test_confided.py", "tests/serve/ors/test_secrets.py", "tests/serve/control/test_secrets.py")
ARCHIVE = ("tests/serve/test_archive.py",)
SIZE = ("tests/serve/test_scale.py",)
ENDS = ("tests/serve/test_ends.py", "tests/serve/test_truth.py")
ORS = ("tests/serve/ors/test_calls.py", "tests/serve/ors/test_sessions.py", "tests/serve/ors/test_resume.py")
CALENDARS = ("tests/resources/schedule/test_calendar.py",)
QUEUES = ("tests/resources/schedule/test_queue.py",)
OUTBOX = ("tests/resources/schedule/test_outbox.py",)
CRON = ("tests/resources/schedule/test_rules.py",)
DATABASE = ("tests/resources/database/test_database.py", "tests/resources/database/test_misuse.py")
DIFFERENCE = ("tests/resources/database/test_differences.py",)
DATES = ("tests/resources/database/test_time.py", "tests/resources/database/test_traps.py")
WORKSPACE = ("tests/resources/workspace/test_workspace.py", "tests/resources/workspace/test_hostile.py")
CONTENT = ("tests/resources/workspace/test_content.py",)
ASKING = ("tests/resources/postgres/test_asking.py",)
SANDBOX = ("tests/resources/sandbox/test_policy.py",)

PLANTED: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    # --- serving ---
    ("serve/http/keys.py", 'self.role == "admin" or self.name', 'self.role != "agent" or self.name', (*KEYS, *ENDS)),
    ("serve/http/keys.py", "hmac.compare_digest(_hash(self.salt, key), self.hash)", "len(key) > 0", KEYS),
    ("serve/http/keys.py", "if mode & (stat.S_IWGRP | stat.S_IWOTH)", "if mode & stat.S_IWGRP", KEYS),
    ("serve/http/keys.py", "if stamp != self._stamp:", "if stamp < self._stamp:", KEYS),
    ("serve/http/keys.py", "[line for line in lines if line.name != name]", "lines", KEYS),
    (
        "serve/http/auth.py",
        'request.path.strip("/") in FREE',
        'request.path.strip("/").split("/")[-1] in FREE',
        (*DOOR, *KEYS),
    ),
    ("serve/http/auth.py", "name not in self._names and not self._is_here(name)", "False", DOOR),
    ("serve/http/auth.py", "own or origin in self._origins", "True or origin in self._origins", DOOR),
    ("serve/http/auth.py", 'return ipaddress.ip_address(name.strip("[]")).is_loopback', "return True", DOOR),
    ("serve/http/auth.py", "+ 1 / self._rate - now - max(1.0, 2 * self._rate)", "+ 1 / self._rate - now - 9e9", DOOR),
    ("serve/http/limits.py", "if self._open[what] >= most", "if self._open[what] > most", LIMITS),
    ("serve/http/limits.py", "self._open[name] += number", "self._open[name] += abs(number)", LIMITS),
    ("serve/control/once.py", "if before != digest:", "if before == '':", ONCE),
    ("serve/control/once.py", "self._known[name] = (digest, response)", "pass", ONCE),
    ("serve/control/once.py", "self._bytes += len(response.body)", "self._bytes += 0", ONCE),
    ("serve/episodes/secrets.py", "if len(value) >= SOUGHT", "if len(value) > 99", SECRETS),
    ("serve/episodes/secrets.py", 'words = words.replace(form, "***")', "words = words", SECRETS),
    ("serve/episodes/secrets.py", "_shown.reset(token)", "pass", SECRETS),
    ("serve/episodes/archive.py", "while free in beyond:", "while False:", ARCHIVE),
    ("serve/episodes/archive.py", "attempt += 1", "attempt += 2", ARCHIVE),
    ("serve/episodes/host.py", 'self.room.add("episodes", live.owner.name, -1)', "pass", LIMITS),
    ("serve/episodes/live.py", "waiting = self._running.pop(key, None)", "waiting = None", (*ORS, *ENDS)),
    ("serve/episodes/live.py", "self._turns[key] = index", "pass", ORS),
    ("serve/episodes/live.py", "self._size.check(episode, reply)", "pass", SIZE),
    # --- resources ---
    ("resources/schedule/hours.py", "return (day + 3) % 7", "return (day + 4) % 7", CALENDARS),
    ("resources/schedule/hours.py", "start <= rest < end for start", "start < rest < end for start", CALENDARS),
    ("resources/schedule/hours.py", "(0, end - DAY)", "(0, end - DAY + 1)", CALENDARS),
    ("resources/schedule/hours.py", "if start == end:", "if False:", CALENDARS),
    ("resources/schedule/queues.py", "(row.due, row.number) == entry[:2]", "row.due == entry[0]", QUEUES),
    ("resources/schedule/queues.py", "run.place += 1", "run.place += 2", QUEUES),
    (
        "resources/schedule/queues.py",
        "key=lambda row: (row.due, row.number)",
        "key=lambda row: row.number",
        (*QUEUES, *OUTBOX),
    ),
    ("resources/schedule/outbox.py", "if topic not in self.paused:", "if topic in self.paused:", OUTBOX),
    ("resources/schedule/outbox.py", "self.events += 1", "self.events += 0", OUTBOX),
    ("resources/database/dates.py", "values[place] = _NOTHING", "pass", DATES),
    ("resources/database/difference.py", "type(old[name]) is type(new[name])", "True", DIFFERENCE),
    ("resources/database/difference.py", "self._strays -= found.pages", "pass", DIFFERENCE),
    (
        "resources/database/difference.py",
        "if old is None or new is None or not _same(old, new):",
        "if old is None or new is None:",
        DIFFERENCE,
    ),
    ("resources/workspace/difference.py", "if old is None or not old.like(new):", "if old is None:", WORKSPACE),
    ("resources/workspace/content.py", "end = min(self.size, offset + size)", "end = offset + size", CONTENT),
    ("resources/workspace/paths.py", 'if b"\\0" in data:', 'if b"\\1" in data:', WORKSPACE),
    ("resources/sandbox/policy.py", "**policy.env, **env}", "**env, **policy.env}", SANDBOX),
    ("resources/postgres/asking.py", "if len(parsed) != 1:", "if not parsed:", ASKING),
)
