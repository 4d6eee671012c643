"""A queue of jobs that are worked on under a lease, which expires on a clock that only `wait` moves."""

LEASE = 30

# Job: priority, minutes of work.
QUEUES = {
    "north": {"n1": (2, 20), "n2": (5, 10), "n3": (5, 25), "n4": (1, 5)},
    "south": {"s1": (3, 45), "s2": (4, 15), "s3": (1, 30)},
    "east": {"e1": (1, 10), "e2": (1, 10), "e3": (9, 70), "e4": (2, 20)},
}
# Task: queue, number of jobs, deadline in minutes.
ASKED = [
    ("north", 1, 30),
    ("north", 2, 60),
    ("north", 3, 90),
    ("south", 1, 45),
    ("south", 2, 75),
    ("south", 3, 120),
    ("east", 1, 90),
    ("east", 4, 130),
]


def order(queue):
    return sorted(QUEUES[queue], key=lambda job: (-QUEUES[queue][job][0], job))


class Queue:
    """A session."""

    def tasks(self):
        return [{"id": f"{queue}-{count}", "n": n} for n, (queue, count, _) in enumerate(ASKED)]

    def tools(self):
        def tool(name, text, **properties):
            parameters = {"type": "object", "properties": properties, "required": [*properties]}
            return {"name": name, "description": text, "parameters": parameters}

        lease = {"type": "integer", "description": "Number of the lease."}
        minutes = {"type": "integer", "minimum": 1, "maximum": 60, "description": "How long."}
        return [
            tool("show", "Read the clock, all jobs with priority, minutes of work and status, and your lease."),
            tool(
                "claim",
                f"Lease the waiting job of the highest priority, of equal ones that of the lowest id, for {LEASE} "
                "minutes. You hold one lease at a time. Leases are numbered from 1.",
            ),
            tool("extend", f"Let your lease end {LEASE} minutes from now, however long it had left.", lease=lease),
            tool("finish", "Mark the job as done; its minutes must have passed since the claim.", lease=lease),
            tool("release", "Give the job back; it waits again and its work is lost.", lease=lease),
            tool(
                "wait",
                "Let time pass. A lease that reaches its end expires: its job waits again, its work is lost.",
                minutes=minutes,
            ),
        ]

    def reset(self, task, seed):
        self.queue, self.count, self.deadline = ASKED[task["n"]]
        self.now, self.leases, self.lease = 0, 0, None
        self.status = dict.fromkeys(QUEUES[self.queue], "waiting")
        return (
            f"Finish exactly {self.count} of the {len(self.status)} jobs of the queue {self.queue}, in the order in "
            f"which it gives them out. Be done at minute {self.deadline} or before, and hold no lease at the end. "
            "It is minute 0. You are judged by the jobs that are done, your lease and the clock when you stop."
        )

    def call(self, name, arguments):
        takes = {"show": None, "claim": None, "extend": "lease", "finish": "lease", "release": "lease"}
        takes["wait"] = "minutes"
        if name not in takes:
            return {"ok": False, "error": f"no tool {name!r}; there are {', '.join(takes)}"}
        key = takes[name]
        if [*arguments] != ([key] if key else []):
            return {"ok": False, "error": f"{name} takes {key or 'no arguments'}, got {', '.join(arguments)}"}
        value = arguments.get(key)
        if key and type(value) is not int:
            return {"ok": False, "error": f"{key} must be an integer, got {value!r}"}
        if key == "lease" and (self.lease is None or self.lease["lease"] != value):
            held = self.lease["lease"] if self.lease else "none"
            return {"ok": False, "error": f"you do not hold lease {value}; you hold {held}"}
        result = getattr(self, "_" + name)(*([value] if key == "minutes" else []))
        return {"ok": "error" not in result, **result}

    def _show(self):
        jobs = [
            {"job": job, "priority": priority, "minutes": minutes, "status": self.status[job]}
            for job, (priority, minutes) in QUEUES[self.queue].items()
        ]
        return {"minute": self.now, "jobs": jobs, "lease": dict(self.lease) if self.lease else None}

    def _claim(self):
        if self.lease:
            return {"error": f"you hold lease {self.lease['lease']}; finish or release it first"}
        waiting = [job for job in order(self.queue) if self.status[job] == "waiting"]
        if not waiting:
            return {"error": "no job is waiting"}
        self.leases += 1
        self.status[waiting[0]] = "leased"
        self.lease = {"lease": self.leases, "job": waiting[0], "claimed": self.now, "ends": self.now + LEASE}
        return dict(self.lease) | {"minutes": QUEUES[self.queue][waiting[0]][1]}

    def _extend(self):
        self.lease["ends"] = self.now + LEASE
        return dict(self.lease)

    def _finish(self):
        job = self.lease["job"]
        left = self.lease["claimed"] + QUEUES[self.queue][job][1] - self.now
        if left > 0:
            return {"error": f"{job} needs {left} more minutes of work"}
        self.status[job], self.lease = "done", None
        return {"job": job, "status": "done"}

    def _release(self):
        job = self.lease["job"]
        self.status[job], self.lease = "waiting", None
        return {"job": job, "status": "waiting"}

    def _wait(self, minutes):
        if not 1 <= minutes <= 60:
            return {"error": f"minutes must be from 1 to 60, got {minutes}"}
        self.now += minutes
        expired = self.lease if self.lease and self.lease["ends"] <= self.now else None
        if expired:
            self._release()
        return {"minute": self.now, "expired": expired["lease"] if expired else None}

    def score(self):
        done = {job for job, status in self.status.items() if status == "done"}
        right = done == set(order(self.queue)[: self.count])
        return float(right and self.lease is None and self.now <= self.deadline)

    def state(self):
        return self._show()

    def oracle(self, task):
        queue, count, _ = ASKED[task["n"]]
        calls = []
        for number, job in enumerate(order(queue)[:count], 1):
            left = QUEUES[queue][job][1]
            calls.append(["claim", {}])
            while left:
                step = min(left, LEASE - 5)
                left -= step
                calls += [["wait", {"minutes": step}], ["extend", {"lease": number}]]
            calls.append(["finish", {"lease": number}])
        return calls
