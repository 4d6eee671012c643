"""Picture of the documentation: `python -m tests.products.picture` writes `docs/pictures/zendesk.png`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from quintain.products import zendesk
from tests.audit.page.browser import program
from tests.products.conftest import Client
from tests.products.pages import HOST, signed

TARGET = Path(__file__).parents[2] / "docs/pictures/zendesk.png"
ASKED = """Hello,

my printer P-300 prints every second page blank since the update of Monday.
I have switched it off and on again. My order is 48213."""
REPLY = "Thank you for the order number. Please send us the firmware version: Settings > About."


def world() -> zendesk.ZendeskPages:
    """Returns an account whose browser shows a ticket in work."""
    made = zendesk.account(zendesk.ZendeskPages)
    zendesk.populate(made)
    signed("agent1@acme.example", made)
    target = {"priority": "high", "metric": "requester_wait_time", "target": 480}
    policy = {"title": "Standard", "filter": {"all": [], "any": []}, "policy_metrics": [target]}
    Client(made)("POST", "slas/policies", {"sla_policy": policy})
    Client(made)("POST", "organizations", {"organization": {"name": "Firm", "domain_names": ["firm.example"]}})
    Client(made)(
        "POST", "users", {"user": {"name": "Maria Lopez", "email": "maria@firm.example", "phone": "+34 911 23 45"}}
    )
    customer, agent = Client(made, "maria@firm.example"), Client(made, "agent1@acme.example")
    customer("POST", "requests", {"request": {"subject": "Where is my order?", "comment": {"body": "It is 48213."}}})
    asked = {"subject": "Every second page is blank", "comment": {"body": ASKED}}
    number = customer("POST", "requests", {"request": asked})["request"]["id"]
    about: dict[str, Any] = {
        "priority": "high",
        "type": "incident",
        "tags": ["printer", "p300"],
        "assignee_email": "agent1@acme.example",
    }
    agent.put(number, **about, comment={"body": REPLY, "public": True})
    agent.put(number, comment={"body": "Same symptom as #2: ask level 2 about firmware 7.1.", "public": False})
    customer("PUT", f"requests/{number}", {"request": {"comment": {"body": "It is version 7.1.0."}}})
    made.goto(f"{HOST}/agent/tickets/{number}")
    return made


def main() -> None:
    """Draws the page of a ticket."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 960})
        tab.set_content(world().browser.tab.page.decode())
        TARGET.write_bytes(tab.screenshot())
        browser.close()


if __name__ == "__main__":
    main()
