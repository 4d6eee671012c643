"""A plain subject with a bug, one without, many that misbehave, and checks of our own: files for tests."""

DESK = '''
"""Desks on which letters are to be sent."""

import fcntl
import os
import pathlib
import signal
import socket
import sys
import threading
import time


class Desk:
    """Sound: who sends the letter is paid."""

    def tasks(self):
        return ["ann", "bob"]

    def tools(self):
        number = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
        return [{"name": "send", "description": "Send a letter.", "parameters": number}]

    def reset(self, task, seed):
        self.task, self.sent = task, []
        return f"Send a letter to {task}."

    def call(self, name, arguments):
        self.sent.append(arguments["to"])
        return {"sent": arguments["to"]}

    def score(self):
        return float(self.task in self.sent)

    def oracle(self, task):
        return [["send", {"to": task}]]

    def state(self):
        return {"sent": list(self.sent)}


class Generous(Desk):
    """Everything is paid."""

    def score(self):
        return 1.0


class Keyed(Desk):
    """It needs a variable, and pays by another one that must not be there."""

    def __init__(self):
        self.key = os.environ["DESK_KEY"]

    def score(self):
        return float("DESK_SECRET" not in os.environ and self.key == "k" and os.environ["TZ"] != "Mars")


class Gone(Desk):
    """Its constructor ends the process."""

    def __init__(self):
        os._exit(7)


class Quits(Desk):
    """Its constructor raises SystemExit."""

    def __init__(self):
        sys.exit("no licence")


class Broken(Desk):
    """Its constructor raises."""

    def __init__(self):
        raise RuntimeError("the desk has no drawers")


class Listless(Desk):
    """Its tasks never come."""

    def tasks(self):
        time.sleep(60)


class Halved:
    """No score."""

    def tasks(self):
        return []

    def reset(self, task, seed):
        return ""


class Hangs(Desk):
    """A call that does not come back, whatever is asked of it."""

    def call(self, name, arguments):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)


class Crashes(Desk):
    """A call that kills its process."""

    def call(self, name, arguments):
        os.kill(os.getpid(), signal.SIGSEGV)


class Forks(Desk):
    """A call that leaves processes behind, one in a session of its own, and a port that is held."""

    def call(self, name, arguments):
        held = socket.create_server(("127.0.0.1", 0))
        pathlib.Path("ports").open("a").write(f"{held.getsockname()[1]}\\n")
        for away in (False, True):
            if os.fork() == 0:
                if away:
                    os.setsid()
                time.sleep(60)
                os._exit(0)
        return super().call(name, arguments)


class Prints(Desk):
    """Megabytes on stdout and stderr."""

    def call(self, name, arguments):
        print("x" * 3_000_000)
        print("y" * 3_000_000, file=sys.stderr, flush=True)
        return super().call(name, arguments)


class Threads(Desk):
    """Threads that never end, and are no daemons."""

    def call(self, name, arguments):
        for _ in range(20):
            threading.Thread(target=time.sleep, args=(60,)).start()
        return super().call(name, arguments)


class Refuses(Desk):
    """No task can begin."""

    def reset(self, task, seed):
        raise RuntimeError("not today")


class Strange(Desk):
    """Nothing it gives is plain data."""

    def tools(self):
        return [*super().tools(), {"name": "odd", "parameters": {"properties": {"x": {"default": object()}}}}]

    def reset(self, task, seed):
        super().reset(task, seed)
        return object()

    def call(self, name, arguments):
        super().call(name, arguments)
        loop = []
        loop.append(loop)
        return {"loop": loop, 3: lambda: None, "set": {1, 2}, "bytes": b"\\xff", "surrogate": "\\ud800"}

    def state(self):
        return threading.Lock()


class Shifting(Desk):
    """Another schema at each look."""

    looks = 0

    def tools(self):
        Shifting.looks += 1
        return [{"name": f"send{os.getpid()}_{self.looks}", "parameters": {}}]

    def tasks(self):
        return ["ann", "bob"] if os.getpid() % 2 else ["ann", "bob", str(os.getpid())]


class Hungry(Desk):
    """More memory than there is."""

    def call(self, name, arguments):
        return "x" * (1 << 40)
'''

CHECK = '''
"""Two questions of our own."""

from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.probe import Probe, call, reset, score


@check("x.idle", "reward_hack", value=90)
def idle(ctx):
    """Nobody is paid for doing nothing."""
    for task in ctx.tasks:
        ctx.count_comparisons()
        probe = Probe((reset(task), call("send", {"to": "nobody"}), score()))
        if ctx.play_probe(probe).at("score").value == {"score": 1.0}:
            yield ctx.finding(
                "a letter to nobody is paid", probe, relation="pays", marks=("score",), data=1.0, part="V",
                expected=0.0, observed=1.0, teaches="to write to nobody",
            )


@check("x.shy", "judge", needs=("judge",))
def shy(ctx):
    """Whether the judge can be shouted down."""
    raise NotChecked("nobody shouts")


@check("x.bad", "leak", value=10)
def bad(ctx):
    """A check that breaks."""
    raise ZeroDivisionError("mine")


@check("x.lazy", "flaky_verifier", value=20)
def lazy(ctx):
    """Whether one can look without looking."""
    return ()
'''
