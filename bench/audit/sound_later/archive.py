"""A small archive with a keyword search (stop words, stems, ties by id) and one answer per session."""

import re

PAPERS = {
    "A01": ("Harbour log of Norrholm", "The lighthouse of Norrholm was lit for the first time in 1873."),
    "A02": ("Harbour log of Vesk", "The pier of Vesk measures 412 metres. Its lighthouse was lit in 1904."),
    "A03": ("Letters of Ingrid Tal", "Ingrid Tal painted 53 boats in the winter, and sold nine of them."),
    "A04": ("Letters of Oskar Tal", "Oskar Tal repaired clocks. He was paid 64 marks for the clock of the town hall."),
    "A05": ("Bridge accounts", "The bridges over the Aune cost 58200 marks, the walls another 7150 marks."),
    "A06": ("Parish book", "In 1888 the parish of Vesk counted 1312 souls."),
    "A07": ("Parish book, second part", "In 1889 the parish of Vesk counted 1275 souls, for many had sailed."),
    "A08": ("School inspection", "The school of Norrholm has 83 pupils and two stoves."),
    "A09": ("Ship list", "The schooner Mevrouw carried 140 barrels; the brig Halcyon carried 95 barrels."),
    "A10": ("Ice notes", "The Aune froze on the 9th of December and was walked upon by children."),
    "A11": ("Market rules", "A stall pays 3 marks a day. Stalls of fishers pay nothing."),
    "A12": ("Fire of the mill", "The mill burned in 1861. Rebuilding it took 26 months."),
}
ASKED = {
    "norrholm-light": ("In which year was the lighthouse of Norrholm first lit?", "1873", "lighthouse Norrholm", "A01"),
    "vesk-pier": ("How many metres long is the pier of Vesk?", "412", "pier of Vesk", "A02"),
    "boats": ("How many boats did Ingrid Tal paint?", "53", "painting boats", "A03"),
    "clock": ("How many marks was Oskar Tal paid for the clock of the town hall?", "64", "repairing clocks", "A04"),
    "bridges": ("How many marks did the bridges over the Aune cost, without the walls?", "58200", "bridges", "A05"),
    "souls": ("How many souls did the parish of Vesk lose from 1888 to 1889?", "37", "parish souls", "A06"),
    "barrels": ("How many barrels did the Mevrouw and the Halcyon carry together?", "235", "barrels carried", "A09"),
    "mill": ("How many months did the rebuilding of the mill take?", "26", "mill burned", "A12"),
}
STOP = "a an and by did for had has he her his how in is it its many of on one or over the them to was were with"
SHOWN = 5


def stem(word):
    """Returns a word without a final "ing", "ed" or "s", if four letters or more are left."""
    for end in ("ing", "ed", "s"):
        if word.endswith(end) and len(word) - len(end) >= 4:
            return word.removesuffix(end)
    return word


def stems(text):
    return [stem(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP.split()]


TOOLS = {
    "search": (
        (
            f"Search titles and texts. Upper case does not matter. These words are ignored: {STOP}. Of other words one "
            "ending is dropped if four letters or more are left: ing, ed or s. A hit holds at least one word of the "
            f"query. Shown are at most {SHOWN} hits with their score, the number of different words of the query that "
            "they hold, the highest first, equal ones by id; 'total' counts all hits."
        ),
        {"query": {"type": "string", "minLength": 1, "maxLength": 100}},
    ),
    "read": ("Read a paper.", {"id": {"type": "string", "description": "Id from a search, such as A01."}}),
    "submit": (
        "Submit the answer. It is final: a session takes one. Searching and reading stay possible.",
        {"answer": {"type": "string", "minLength": 1, "maxLength": 40, "description": "A whole number in digits."}},
    ),
}


class Archive:
    """A session."""

    def tasks(self):
        return [*ASKED]

    def tools(self):
        return [
            {"name": name, "description": text, "parameters": {"type": "object", "properties": p, "required": [*p]}}
            for name, (text, p) in TOOLS.items()
        ]

    def reset(self, task, seed):
        self.task, self.answer = task, None
        return f"{ASKED[task][0]} Find it in the archive, and submit a whole number in digits."

    def call(self, name, arguments):
        if name not in TOOLS:
            return {"error": f"no tool {name!r}"}
        (key, spec), *_ = TOOLS[name][1].items()
        value = arguments.get(key)
        if [*arguments] != [key] or not isinstance(value, str):
            return {"error": f"{name} takes one argument, {key}, a text"}
        if not spec.get("minLength", 0) <= len(value) <= spec.get("maxLength", len(value)):
            return {"error": f"{key} must have 1 to {spec['maxLength']} characters, got {len(value)}"}
        return getattr(self, "_" + name)(value)

    def _search(self, query):
        words = set(stems(query))
        if not words:
            return {"error": "the query holds only words that are ignored, or none"}
        scored = [(len(words & set(stems(f"{title} {text}"))), key) for key, (title, text) in PAPERS.items()]
        hits = sorted((-score, key) for score, key in scored if score)
        return {
            "total": len(hits),
            "hits": [{"id": key, "title": PAPERS[key][0], "score": -score} for score, key in hits[:SHOWN]],
        }

    def _read(self, key):
        if key not in PAPERS:
            return {"error": f"no paper {key!r}; find ids with search"}
        return {"id": key, "title": PAPERS[key][0], "text": PAPERS[key][1]}

    def _submit(self, answer):
        if self.answer is not None:
            return {"error": f"you have submitted {self.answer!r} already; an answer is final"}
        if not re.fullmatch(r"[0-9]+", answer):
            return {"error": f"the answer must be a whole number in digits, got {answer!r}; nothing was submitted"}
        self.answer = answer
        return {"submitted": answer}

    def score(self):
        return float(self.answer is not None and int(self.answer) == int(ASKED[self.task][1]))

    def state(self):
        return {"answer": self.answer}

    def oracle(self, task):
        _, answer, query, paper = ASKED[task]
        more = [["read", {"id": "A07"}]] if task == "souls" else []
        return [["search", {"query": query}], ["read", {"id": paper}], *more, ["submit", {"answer": answer}]]
