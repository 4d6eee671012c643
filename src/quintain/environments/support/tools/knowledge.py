"""Tools about what the desk knows: articles, incidents, macros, and who works here."""

from __future__ import annotations

from typing import Any, Literal

from quintain.environments.support.desk import Desk, paged, reading, shown
from quintain.environments.support.schema.desk import Article, Incident, Macro, View
from quintain.environments.support.schema.people import Agent, Group

from .people import Line, Number, Page


class Knowledge(Desk):
    """The knowledge base."""

    @reading
    def search_articles(self, query: Line, page: Page = 1) -> dict[str, Any]:
        """Find articles in which every word of the query occurs; ten on a page.

        Internal articles are for you; what they say never goes to a customer.

        Args:
            query: Words or parts of words; capital letters do not matter.
            page: Page of the result, from 1.
        """
        words = query.replace("%", "").split()
        where = " AND ".join(["title || ' ' || body LIKE ?"] * len(words)) or "1"
        found = self.rows(Article, f"{where}", *[f"%{word}%" for word in words])
        return paged([shown(row, "body") for row in found], page)

    @reading
    def get_article(self, article_id: Number) -> dict[str, Any]:
        """Show an article.

        Args:
            article_id: Number of the article.
        """
        return shown(self.need(Article, article_id))

    @reading
    def list_incidents(
        self, status: Literal["unresolved", "resolved"] = "unresolved", page: Page = 1
    ) -> dict[str, Any]:
        """List incidents, latest first, ten on a page.

        Args:
            status: Whether those that still last or those that are over.
            page: Page of the result, from 1.
        """
        sign = "=" if status == "resolved" else "<>"
        found = self.rows(Incident, f"status {sign} 'resolved' ORDER BY started DESC, id DESC")
        return paged([shown(row, "public_text", "internal_text") for row in found], page)

    @reading
    def get_incident(self, incident_id: Number) -> dict[str, Any]:
        """Show an incident, with the text for customers and the internal one.

        Args:
            incident_id: Number of the incident.
        """
        return {"number": f"INC-{incident_id}"} | shown(self.need(Incident, incident_id))

    @reading
    def list_macros(self) -> list[dict[str, Any]]:
        """List the macros: prepared replies with changes of fields."""
        return [shown(row) for row in self.rows(Macro, "1")]

    @reading
    def list_views(self) -> list[dict[str, Any]]:
        """List the views, which are stored questions about tickets; list_tickets shows what is in one."""
        return [shown(row) for row in self.rows(View, "1")]

    @reading
    def list_groups(self) -> list[dict[str, Any]]:
        """List the groups with what they handle and who works in them."""
        return [
            shown(group)
            | {"agents": [{"id": row.id, "name": row.name, "role": row.role}
                          for row in self.rows(Agent, "group_id = ? AND is_active = 1", group.id)]}
            for group in self.rows(Group, "1")
        ]  # fmt: skip
