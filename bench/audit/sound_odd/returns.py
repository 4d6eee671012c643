"""A returns desk whose tool takes more than its schema lists; the texts of its errors tell how."""

LIMIT = 50  # euros of an order that need no supervisor

ORDERS = {"K1": 35, "K2": 80, "K3": 49, "K4": 120, "K5": 50}
CODES = ("8251", "3907", "6614")

# Each: what is asked for, refunds at the end, index of the supervisor's code or None.
JOBS = [
    ("Refund order K1 in full, 35 euros.", {"K1": 35}, None),
    ("Refund 20 of the 49 euros of order K3.", {"K3": 20}, None),
    ("Refund order K2 in full, 80 euros.", {"K2": 80}, 0),
    ("Refund K5 in full, 50 euros, and 10 euros of K4.", {"K5": 50, "K4": 10}, None),
    ("Refund 100 euros of order K4.", {"K4": 100}, 1),
    ("Refund K1 (35 euros), K2 (80) and K4 (120) in full.", {"K1": 35, "K2": 80, "K4": 120}, 2),
    ("Refund one euro of each of the five orders.", dict.fromkeys(ORDERS, 1), None),
]


class Returns:
    """A session."""

    def tasks(self):
        return [{"id": f"returns-{n}", "n": n} for n in range(len(JOBS))]

    def tools(self):
        order = {"type": "string", "enum": [*ORDERS], "description": "Number of the order."}
        amount = {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Euros."}
        return [
            {
                "name": "orders",
                "description": "List the orders with their amount and what is refunded of it.",
                "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
            },
            {
                "name": "refund",
                "description": "Refund a part of an order or all of it. An order may be refunded several times, "
                "together at most its amount. Further fields are texts; they are kept as notes to the refund, except "
                "those that the desk asks for.",
                "parameters": {
                    "type": "object",
                    "properties": {"order": order, "amount": amount},
                    "required": ["amount"],
                    "additionalProperties": {"type": "string"},
                },
            },
            {
                "name": "refunds",
                "description": "List all refunds with their notes, the oldest first.",
                "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
            },
        ]

    def reset(self, task, seed):
        self.n, self.made = task["n"], []
        prompt, _, code = JOBS[self.n]
        self.code = None if code is None else CODES[code]
        more = f" Your supervisor's code for today is {self.code}." if self.code else ""
        return f"{prompt}{more} You are judged by the sum that is refunded of each order; notes do not matter."

    def call(self, name, arguments):
        if name not in ("orders", "refund", "refunds"):
            return {"error": f"no tool {name!r}; there are orders, refund and refunds"}
        if name == "refund":
            return self._refund(dict(arguments))
        if arguments:
            return {"error": f"{name} takes no arguments, got {sorted(arguments)}"}
        return self.state()["orders"] if name == "orders" else self.state()["refunds"]

    def _refund(self, fields):
        if "order_no" in fields and "order" not in fields:
            fields["order"] = fields.pop("order_no")  # as the error below says
        order, amount = fields.pop("order", None), fields.pop("amount", None)
        if why := self._wrong(order, amount, fields) or self._refused(order, amount, fields.pop("override_code", None)):
            return {"error": why}
        self.made.append({"order": order, "amount": amount, "notes": fields})
        return {"order": order, "refunded": self._sums()[order], "of": ORDERS[order]}

    @staticmethod
    def _wrong(order, amount, fields):
        if order is None:
            return "give the order (older tills call it order_no)"
        if type(order) is not str or order not in ORDERS:
            return f"no order {order!r}; there are {', '.join(ORDERS)}"
        if type(amount) is not int or not 1 <= amount <= 1000:
            return f"amount must be a whole number from 1 to 1000, got {amount!r}"
        wrong = [key for key, value in fields.items() if type(value) is not str]
        return f"further fields must be texts: {', '.join(wrong)}" if wrong else ""

    def _refused(self, order, amount, code):
        total = self._sums()[order] + amount
        if total > ORDERS[order]:
            return f"{order} has only {ORDERS[order] - total + amount} euros left"
        if total > LIMIT and code is None:
            return f"more than {LIMIT} euros of one order: give override_code from your supervisor"
        return "override_code is not the code of your supervisor" if code not in (None, self.code) else ""

    def _sums(self):
        return {order: sum(one["amount"] for one in self.made if one["order"] == order) for order in ORDERS}

    def state(self):
        orders = [{"order": order, "amount": ORDERS[order], "refunded": sums} for order, sums in self._sums().items()]
        return {"orders": orders, "refunds": [one | {"notes": dict(one["notes"])} for one in self.made]}

    def oracle(self, task):
        _, wanted, code = JOBS[task["n"]]
        return [
            ["refund", {"order": order, "amount": amount} | ({"override_code": CODES[code]} if amount > LIMIT else {})]
            for order, amount in wanted.items()
        ]

    def score(self):
        return float({order: amount for order, amount in self._sums().items() if amount} == JOBS[self.n][1])
