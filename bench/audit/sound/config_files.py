"""Folder of configuration files to edit; JSON counts by its content, every other file by its bytes."""

import json
from typing import Annotated, Any

from msgspec import Meta

import quintain as qn
from quintain.resources.workspace import Workspace
from quintain.state import Rng
from quintain.task import Call

LONGEST, NAMES = 4000, ("billing", "search", "mail", "stock", "login", "report")
Path = Annotated[str, Meta(min_length=1, max_length=100)]


class Folder(qn.State):
    files: Workspace

    @qn.tool
    def list_files(self) -> list[str]:
        """List the paths of all files in alphabetical order."""
        return sorted(self.files.glob("**/*.*"))

    @qn.tool
    def read_file(self, path: Path) -> str:
        """Read a file.

        Args:
            path: Path of the file.
        """
        return self._text(path)

    @qn.tool
    def write_file(self, path: Path, text: Annotated[str, Meta(max_length=LONGEST)]) -> str:
        """Replace the whole content of an existing file; a .json file must stay valid JSON.

        Args:
            path: Path of the file.
            text: New content, at most 4,000 characters.
        """
        self._text(path)
        return self._save(path, text)

    @qn.tool
    def replace(self, path: Path, old: Annotated[str, Meta(min_length=1, max_length=LONGEST)], new: str) -> str:
        """Replace a text that stands in a file exactly once; a .json file must stay valid JSON.

        Args:
            path: Path of the file.
            old: Text to replace, with its white space.
            new: Text that takes its place; the file may have at most 4,000 characters afterwards.
        """
        text = self._text(path)
        if text.count(old) != 1:
            raise qn.ToolError(f"{old!r} stands {text.count(old)} times in {path}; it must stand there once")
        return self._save(path, text.replace(old, new))

    def _text(self, path: str) -> str:
        if path not in self.list_files():
            raise qn.ToolError(f"no file {path!r}; `list_files` shows the paths")
        return self.files.text(path)

    def _save(self, path: str, text: str) -> str:
        if len(text) > LONGEST:
            raise qn.ToolError(f"the file would have {len(text)} characters; at most {LONGEST} are allowed")
        if path.endswith(".json"):
            try:
                parsed(text)
            except (ValueError, RecursionError) as error:
                raise qn.ToolError(f"this is not valid JSON, so nothing was written: {error}") from error
        self.files.write(path, text)
        return f"wrote {len(text)} characters to {path}"


def parsed(text: str) -> Any:
    """Returns JSON as data; 20.0 becomes 20, since both are one number.

    Raises:
        ValueError, RecursionError: The text is not JSON.
    """

    def number(digits: str) -> float:
        return int(value) if (value := float(digits)).is_integer() else value

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a number of JSON")

    return json.loads(text, parse_float=number, parse_constant=refuse)


def content(files: Workspace) -> dict[str, str]:
    """Returns each file by path: JSON in one canonical layout, every other file as it is."""
    texts = {path: files.text(path) for path in files.glob("**/*.*")}
    return {path: canonical(text) if path.endswith(".json") else text for path, text in texts.items()}


def canonical(text: str) -> str:
    return json.dumps(parsed(text), sort_keys=True)


def make(split: str, number: int) -> qn.Task[Folder]:
    rng = Rng(key=f"config_files/{split}/{number}".encode())
    configs: dict[str, dict[str, Any]] = {}
    for name in NAMES:
        owner = rng.choice(("blue team", "red team"))
        configs[f"services/{name}.json"] = {"owner": owner, "timeout_s": 5 + rng.below(40), "retries": rng.below(4)}
    least = sorted(one["timeout_s"] for one in configs.values())[2 + rng.below(2)] + 1
    texts = {path: json.dumps(config, indent=2) + "\n" for path, config in configs.items()}
    texts["README.md"] = f"# Services\n\nNo timeout below {least} seconds, agreed in case {100 + rng.below(900)}.\n"
    texts["services/old.ini"] = "[old]\ntimeout_s = 1\n"
    calls: list[Call] = [("list_files", {}), *(("read_file", {"path": path}) for path in configs)]
    for path, config in configs.items():
        if config["timeout_s"] < least:
            old, new = (f'"timeout_s": {seconds},' for seconds in (config["timeout_s"], least))
            calls.append(("replace", {"path": path, "old": old, "new": new}))
            config["timeout_s"] = least
    return qn.Task(
        id=f"{split}-{number}",
        prompt=(
            f"No service may have a timeout_s below {least}. In each JSON file of the folder services where it is "
            f"lower, set it to the number {least}; leave all other values, keys and files, such as .ini files, as they "
            f"are. The layout of the JSON does not matter. (Ticket {split}-{number}.)"
        ),
        start=Folder(files=Workspace(texts)),
        truth=texts | {path: json.dumps(config, sort_keys=True) for path, config in configs.items()},
        solution=tuple(calls),
    )


@qn.reward
def files_are_right(view: qn.EpisodeView[Folder]) -> qn.Score:
    found, wanted = content(view.state.files), view.task.truth
    wrong = sorted(path for path in {*found, *wanted} if found.get(path) != wanted.get(path))
    return qn.Score(float(not wrong), f"files that differ: {wrong}")


env = qn.Environment(
    "config_files",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(files_are_right),
    state=Folder,
)
