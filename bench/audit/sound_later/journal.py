"""A journal in double entry: append-only, corrected by reversal only, with keys that make a retry harmless."""

ACCOUNTS = ("bank", "cash", "food", "rent", "sales", "tools")
OLD = [("cash", "sales", 4200), ("rent", "bank", 65000), ("food", "cash", 1895), ("tools", "cash", 2350)]

# Each job: what is asked, and the calls: (debit, credit, cents) posts, a number reverses.
JOBS = [
    ("Rent of 650.00 was paid from the bank. Book it.", [("rent", "bank", 65000)]),
    ("19.05 in cash went for food. Book it.", [("food", "cash", 1905)]),
    ("Entry 2 never happened. Take it back.", [2]),
    ("Entry 3 has the wrong amount: the food cost 18.59, not 18.95. Correct it.", [3, ("food", "cash", 1859)]),
    ("Entry 4 was paid from the bank, not in cash. Correct it.", [4, ("tools", "bank", 2350)]),
    (
        "Sales of 42.00 in cash came in once more, and all the cash of that sale went to the bank. Book both.",
        [("cash", "sales", 4200), ("bank", "cash", 4200)],
    ),
    ("Two equal tools at 7.30 each were bought in cash: book two entries of 7.30.", [("tools", "cash", 730)] * 2),
    ("Take back entries 1 and 3, and book sales of 88.80 to the bank.", [1, 3, ("bank", "sales", 8880)]),
]
RULES = (
    "An entry debits one account and credits another: money goes from the credited to the debited one. "
    "The journal is only appended to. An entry that was reversed, and its reversal, do not count in the verdict; "
    "the other entries must be exactly the right ones. Keys and order are free."
)

ACCOUNT = {"type": "string", "enum": [*ACCOUNTS]}
CENTS = {"type": "integer", "minimum": 1, "maximum": 10_000_000, "description": "Amount in cents."}
KEY = {"type": "string", "minLength": 1, "maxLength": 40, "description": "Your own name for this post."}
NUMBER = {"type": "integer", "minimum": 1, "description": "Number of the entry."}
TOOLS = {
    "post": (
        (
            "Append an entry. If an entry with this key exists and is the same, nothing is appended and that entry is "
            "returned with repeated=true; if it differs, the post is refused."
        ),
        {"key": KEY, "debit": ACCOUNT, "credit": ACCOUNT, "cents": CENTS},
    ),
    "reverse": (
        (
            "Append the reversal of an entry, which exchanges its accounts. An entry is reversed once; "
            "a reversal cannot be reversed, post the entry again instead."
        ),
        {"number": NUMBER},
    ),
    "balance": ("Read the balance of an account in cents: debits less credits, of all entries.", {"account": ACCOUNT}),
    "entries": ("Read all entries, the oldest first.", {}),
}


def wrong(value, spec):
    """Returns what is wrong with a value, or None."""
    if spec["type"] == "integer":
        if type(value) is not int:
            return f"must be an integer, got {value!r}"
        if value < spec["minimum"] or value > spec.get("maximum", value):
            return f"must be from {spec['minimum']} to {spec.get('maximum', 'the last')}, got {value}"
        return None
    if not isinstance(value, str):
        return f"must be text, got {value!r}"
    if "enum" in spec:
        return None if value in spec["enum"] else f"must be one of {', '.join(spec['enum'])}, got {value!r}"
    return None if 1 <= len(value) <= spec["maxLength"] else f"must have 1 to {spec['maxLength']} characters"


class Journal:
    """A session."""

    def tasks(self):
        return [{"id": f"job-{n}"} for n in range(1, len(JOBS) + 1)]

    def tools(self):
        return [
            {
                "name": name,
                "description": text,
                "parameters": {
                    "type": "object",
                    "properties": spec,
                    "required": [*spec],
                    "additionalProperties": False,
                },
            }
            for name, (text, spec) in TOOLS.items()
        ]

    def reset(self, task, seed):
        self.asked, self.steps = JOBS[int(task["id"][4:]) - 1]
        self.rows = []
        for debit, credit, cents in OLD:
            self._append(debit, credit, cents, f"old-{len(self.rows) + 1}", None)
        return f"{self.asked} {RULES}"

    def call(self, name, arguments):
        if name not in TOOLS:
            return {"error": f"no tool {name!r}"}
        spec = TOOLS[name][1]
        if set(arguments) != set(spec):
            return {"error": f"{name} takes {', '.join(spec) or 'no arguments'}; got {', '.join(sorted(arguments))}"}
        for key, value in arguments.items():
            if problem := wrong(value, spec[key]):
                return {"error": f"{key} {problem}"}
        if name == "entries":
            return [dict(row) for row in self.rows]
        if name == "balance":
            account = arguments["account"]
            total = sum(row["cents"] * ((row["debit"] == account) - (row["credit"] == account)) for row in self.rows)
            return {"account": account, "cents": total}
        return getattr(self, "_" + name)(**arguments)

    def _append(self, debit, credit, cents, key, reverses):
        row = {"number": len(self.rows) + 1, "debit": debit, "credit": credit, "cents": cents}
        self.rows.append(row | {"key": key, "reverses": reverses})
        return dict(self.rows[-1])

    def _post(self, key, debit, credit, cents):
        if debit == credit:
            return {"error": f"debit and credit must be two accounts, got {debit} twice"}
        for row in self.rows:
            if row["key"] == key:
                if (row["debit"], row["credit"], row["cents"]) != (debit, credit, cents):
                    return {"error": f"key {key!r} belongs to entry {row['number']}, which differs; use another key"}
                return dict(row) | {"repeated": True}
        return self._append(debit, credit, cents, key, None) | {"repeated": False}

    def _reverse(self, number):
        if number > len(self.rows):
            return {"error": f"no entry {number}; the last one is {len(self.rows)}"}
        row = self.rows[number - 1]
        if row["reverses"]:
            return {"error": f"entry {number} is a reversal; post the entry again instead"}
        if any(other["reverses"] == number for other in self.rows):
            return {"error": f"entry {number} is reversed already"}
        return self._append(row["credit"], row["debit"], row["cents"], None, number)

    def _live(self):
        gone = {row["reverses"] for row in self.rows}
        return sorted(
            (row["debit"], row["credit"], row["cents"])
            for row in self.rows
            if not row["reverses"] and row["number"] not in gone
        )

    def score(self):
        wanted = [row for n, row in enumerate(OLD, 1) if n not in self.steps]
        return float(self._live() == sorted(wanted + [step for step in self.steps if isinstance(step, tuple)]))

    def state(self):
        return {"entries": [dict(row) for row in self.rows]}

    def oracle(self, task):
        calls = []
        for n, step in enumerate(JOBS[int(task["id"][4:]) - 1][1]):
            if isinstance(step, int):
                calls.append(["reverse", {"number": step}])
            else:
                calls.append(["post", dict(zip(("debit", "credit", "cents"), step, strict=True), key=f"k{n}")])
        return calls
