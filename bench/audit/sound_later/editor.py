"""A line editor with undo and redo. The buffer is a draft: only the text of the last save is graded."""

DEPTH = 10  # edits that undo remembers
WIDE, LONG = 80, 30

POEM = ["The fog is grey", "The sea is calm", "The boat is late"]
LIST = ["eggs", "milk", "bread", "soap"]
CODE = ["a = 1", "b = 2", "print(a + b)"]

# Each: prompt, opening lines, edits of a colleague (which can be undone), solution.
JOBS = {
    "sort": (
        "Bring the shopping list into alphabetical order and save it.",
        LIST,
        [],
        [("delete", 3), ("insert", 1, "bread"), ("save",)],
    ),
    "append": ("Add the line 'tea' at the end of the list and save it.", LIST, [], [("insert", 5, "tea"), ("save",)]),
    "undo-one": (
        "A colleague's last edit of the poem was a mistake. Take back that edit only, and save.",
        POEM,
        [("replace", 1, "The fog is white"), ("delete", 2)],
        [("undo",), ("save",)],
    ),
    "undo-all": (
        "Bring the program back to what it was before your colleague's three edits, and save it.",
        CODE,
        [("replace", 1, "a = 7"), ("replace", 2, "b = 8"), ("insert", 4, "print(b)")],
        [("undo",), ("undo",), ("undo",), ("save",)],
    ),
    "fix": (
        "Line 3 of the program must multiply instead of add. Change it, keeping the spaces as they are, and save.",
        CODE,
        [],
        [("replace", 3, "print(a * b)"), ("save",)],
    ),
    "swap": (
        "Swap the first and the last line of the poem and save it.",
        POEM,
        [],
        [("replace", 1, POEM[2]), ("replace", 3, POEM[0]), ("save",)],
    ),
    "undo-and-go-on": (
        "Take back your colleague's last edit of the list, then replace 'milk' by 'oat milk', and save.",
        LIST,
        [("delete", 1)],
        [("undo",), ("replace", 2, "oat milk"), ("save",)],
    ),
}
LINE = {"type": "integer", "minimum": 1, "maximum": LONG + 1, "description": "Number of a line, from 1."}
TEXT = {"type": "string", "maxLength": WIDE, "description": "The line, without a line break."}
TOOLS = {
    "show": ("Read the buffer, and how many edits can be undone and redone.", {}),
    "replace": ("Replace a line.", {"line": LINE, "text": TEXT}),
    "insert": (
        f"Insert a line before line N; N is at most one more than there are lines. A text has at most {LONG} lines.",
        {"line": LINE, "text": TEXT},
    ),
    "delete": ("Delete a line.", {"line": LINE}),
    "undo": (f"Take back the last edit; the last {DEPTH} are remembered. A save is not an edit.", {}),
    "redo": ("Make again what was undone last. A new edit forgets what was undone.", {}),
    "save": ("Save the buffer. The last save counts.", {}),
}


class Editor:
    """A session."""

    def tasks(self):
        return [*JOBS]

    def tools(self):
        return [
            {"name": name, "description": text, "parameters": {"type": "object", "properties": p, "required": [*p]}}
            for name, (text, p) in TOOLS.items()
        ]

    def reset(self, task, seed):
        self.task, (prompt, lines, edits, _) = task, JOBS[task]
        self.lines, self.past, self.future, self.saved = [*lines], [], [], None
        for edit in edits:
            self._play(edit)
        return f"{prompt} The buffer holds {len(self.lines)} lines and was never saved."

    def _play(self, step):
        return self.call(step[0], dict(zip(TOOLS[step[0]][1], step[1:], strict=True)))

    def call(self, name, arguments):
        if name not in TOOLS:
            return f"Error: unknown tool {name!r}."
        if set(arguments) != set(TOOLS[name][1]):
            return f"Error: {name} takes the arguments {[*TOOLS[name][1]]}, got {sorted(arguments)}."
        line, text = arguments.get("line", 1), arguments.get("text", "")
        if type(line) is not int:
            return f"Error: line must be an integer, got {line!r}."
        if not isinstance(text, str) or len(text) > WIDE or (text and text.splitlines() != [text]):
            return f"Error: text must be one line of at most {WIDE} characters."
        if name in ("replace", "insert", "delete"):
            return self._edit(name, line, text)
        return getattr(self, "_" + name)()

    def _edit(self, name, line, text):
        last = len(self.lines) + (name == "insert")
        if not 1 <= line <= last:
            return f"Error: {name} takes a line from 1 to {last}, got {line}."
        if name == "insert" and len(self.lines) == LONG:
            return f"Error: the text has {LONG} lines, the most that are allowed."
        self.past, self.future = [*self.past, [*self.lines]][-DEPTH:], []
        self.lines[line - 1 : line - (name == "insert")] = [] if name == "delete" else [text]
        return f"Done: {name} at line {line}."

    def _show(self):
        return {"lines": [*self.lines], "can_undo": len(self.past), "can_redo": len(self.future)}

    def _undo(self):
        if not self.past:
            return "Error: there is nothing to undo."
        self.future.append(self.lines)
        self.lines = self.past.pop()
        return "Done: undid one edit."

    def _redo(self):
        if not self.future:
            return "Error: there is nothing to redo."
        self.past.append(self.lines)
        self.lines = self.future.pop()
        return "Done: made one edit again."

    def _save(self):
        self.saved = [*self.lines]
        return f"Saved {len(self.lines)} lines."

    def score(self):
        return float(self.saved is not None and self.saved == self._target())

    def _target(self):
        twin = Editor()
        twin.reset(self.task, 0)
        for step in JOBS[self.task][3]:
            twin._play(step)
        return twin.saved

    def state(self):
        return self._show() | {"saved": self.saved}

    def oracle(self, task):
        return [[step[0], dict(zip(TOOLS[step[0]][1], step[1:], strict=True))] for step in JOBS[task][3]]
