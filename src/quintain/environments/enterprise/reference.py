"""Every table, tool and role in Markdown: `python -m quintain.environments.enterprise.reference > company.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .description import DEPARTMENTS, Column, Company, TableSpec, company
from .tools import summary


def reference() -> str:
    """The company's documentation, made from its description."""
    return "\n".join(_lines(company()))


def _lines(whole: Company) -> Iterator[str]:
    yield "# The company"
    yield f"\n{len(whole.tables)} tables and {len(whole.actions)} tools over {len(DEPARTMENTS)} departments."
    for department in DEPARTMENTS:
        yield f"\n## {department.capitalize()}\n"
        for role, meaning in whole.roles.items():
            if role.startswith(f"{department}."):
                yield f"* role `{role}`: {meaning}"
        for table in whole.tables.values():
            if table.department == department:
                yield from _table(whole, table)
        reports = [a for a in whole.actions.values() if a.kind == "report" and a.department == department]
        yield from _tools("Reports", [(action.name, summary(action)) for action in reports])


def _table(whole: Company, table: TableSpec) -> Iterator[str]:
    yield f"\n### {table.name}\n\n{table.about}. Keys look like `{table.code}-17`.\n"
    yield "| column | kind |\n|---|---|"
    yield from (f"| `{column.name}` | {_kind(column)} |" for column in table.columns.values())
    actions = [action for action in whole.actions.values() if action.table == table.name]
    yield from _tools("Tools", [(action.name, summary(action)) for action in actions])


def _kind(column: Column) -> str:
    words = f"reference to `{column.table}`" if column.table else column.kind
    if column.options:
        words += f": {', '.join(column.options)}"
    return f"{words}, may be empty" if column.is_optional else words


def _tools(title: str, tools: list[tuple[str, str]]) -> Iterator[str]:
    if tools:
        yield f"\n{title}:\n"
        yield from (f"* `{name}`: {does}" for name, does in tools)


if __name__ == "__main__":
    sys.stdout.write(reference() + "\n")
