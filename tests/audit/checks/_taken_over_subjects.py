"""Subjects of the tests of what is taken over and taken back: a board of notices and hosts, sound, and with a fault."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}


def tool(name: str, about: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": about, "parameters": parameters}


class Board:
    """Notices are set and shown once they are rolled out; hosts have versions, and some are frozen when all is done."""

    NEW = "2.0"

    def tasks(self) -> list[str]:
        return [f"{kind} {number}" for number in range(3) for kind in ("notice", "host")]

    def tools(self) -> list[dict[str, Any]]:
        return [
            tool("set_notice", "Set what a page says; it is shown once it is rolled out.", page=TEXT, value=TEXT),
            tool("emit", "Roll out a page as it is set.", page=TEXT),
            tool("install", "Install a version on a host.", host=TEXT, version=TEXT),
            tool("sign_off", "Say that all is done.", remark=TEXT),
        ]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.number = task, int(task[-1])
        pages = {f"page-{n}": {"set": f"old {n}", "shown": f"old {n}"} for n in range(4)}
        hosts = {f"host-{n}": {"version": "1.0"} for n in range(4)}
        self.world: dict[str, Any] = {"pages": pages, "hosts": hosts, "signed": {"remark": ""}}
        self.once: set[str] = set()
        if task.startswith("host"):
            return f"Install {self.NEW} on host-{self.number} and sign off."
        return f"Let the page of {['cats', 'dogs', 'fish'][self.number]} say that it is closed, and roll out the page."

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        schema = next(one for one in self.tools() if one["name"] == name)["parameters"]
        given = [str(arguments.get(one)) for one in schema["required"]]
        page, host = self.world["pages"].get(given[0]), self.world["hosts"].get(given[0])
        if name == "sign_off":
            self.world["signed"]["remark"] = given[0]
        elif name == "install" and host is not None and given[1] in ("1.0", self.NEW):
            if self.world["signed"]["remark"] and given[0] < "host-2":
                return {"error": f"{given[0]} is frozen"}
            host["version"] = given[1]
            self.once.add(f"{given[0]} {given[1]}")
        elif name == "set_notice" and page is not None:
            page["set"] = given[1]
        elif name == "emit" and page is not None:
            page["shown"] = page["set"]
        else:
            return {"error": f"{name} knows no {given[0]}"}
        return {"ok": True}

    def state(self) -> dict[str, Any]:
        return self.world

    def oracle(self, task: str) -> list[Any]:
        if task.startswith("host"):
            return [["install", {"host": f"host-{task[-1]}", "version": self.NEW}], ["sign_off", {"remark": "done"}]]
        page = f"page-{task[-1]}"
        return [["set_notice", {"page": page, "value": "closed"}], ["emit", {"page": page}]]

    def score(self) -> float:
        if self.task.startswith("host"):
            return float(self.installed(f"host-{self.number}") and bool(self.world["signed"]["remark"]))
        return float(self.said(self.world["pages"][f"page-{self.number}"]))

    def installed(self, host: str) -> bool:
        return bool(self.world["hosts"][host]["version"] == self.NEW)

    def said(self, page: dict[str, str]) -> bool:
        return page == {"set": "closed", "shown": "closed"}


class SetIsEnough(Board):
    """Board that pays for a setting without its rollout."""

    def said(self, page: dict[str, str]) -> bool:
        return page["set"] == "closed"


class OnceInstalled(Board):
    """A version counts as installed once it was."""

    def installed(self, host: str) -> bool:
        return f"{host} {self.NEW}" in self.once


SUMS = {"t1": "14", "t2": "25"}


class Login:
    """Sound: who publishes must be logged in, and may log out afterwards."""

    def tasks(self) -> list[str]:
        return list(SUMS)

    def tools(self) -> list[dict[str, Any]]:
        publish = tool("publish", "Publish a value under a title.", title=TEXT, value=TEXT)
        return [tool("login", "Log in.", user=TEXT), tool("logout", "Log out."), publish]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.user = task, ""
        self.published: dict[str, str] = {}
        return f"Log in as ana and publish under the title sum the value {SUMS[task]}."

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "login":
            self.user = arguments["user"]
        elif not self.user:
            return {"error": "log in first"}
        elif name == "logout":
            self.user = ""
        else:
            self.published[arguments["title"]] = arguments["value"]
        return {"ok": True}

    def state(self) -> dict[str, Any]:
        return {"user": self.user, "published": dict(self.published)}

    def score(self) -> float:
        return float(self.published == {"sum": SUMS[self.task]})

    def oracle(self, task: str) -> list[Any]:
        return [["login", {"user": "ana"}], ["publish", {"title": "sum", "value": SUMS[task]}]]
