"""The articles of the knowledge base: the policy in pieces, and what the public may read."""

from __future__ import annotations

from quintain.environments.support.policy import POLICY

PUBLIC = (
    ("How do I reset my password?", "logins", "Choose 'forgot password'. The link in the mail works for 24 hours."),
    ("Why is my account locked?", "logins", "After five wrong passwords, or when an invoice is long overdue."),
    ("When is my card charged?", "billing", "On the day of renewal, and again after some days if that fails."),
    ("What is a pending payment?", "billing", "A reservation of your bank. It disappears after seven days."),
    ("Where is my parcel?", "deliveries", "Follow the tracking number. Carriers scan a parcel at every hub."),
    ("Can I change the address of an order?", "deliveries", "Before it is shipped, yes. Afterwards it depends."),
    ("How do I withdraw from a subscription?", "plans", "Within 14 days after the start you get your money back."),
    ("Which plans are there?", "plans", "Care Basic, Plus, Family, Business and Site; see the website for prices."),
    ("How do coupons work?", "prices", "One coupon per invoice. Each has dates, a plan and sometimes a minimum."),
    ("My device is offline", "devices", "Check the power and your network, then see whether its firmware is current."),
    ("Is the service down?", "devices", "Our status page lists incidents by component and region."),
    ("How long are recordings kept?", "devices", "Seven days with Basic, thirty with all other plans."),
)
INTERNAL = (
    ("Why reservations look like double charges", "billing",
     ("Banks show an authorisation like a payment. In our system it is 'pending' without a counter-entry. Never refund "
      "it: the money would be paid out twice.")),
    ("Velox, Postring and Kurio: what they can do", "deliveries",
     ("Velox and Kurio redirect parcels until they are out for delivery. Postring never does; its parcels come back "
      "within two days. Claims are decided in one to three days. Margin on replacements is tracked by Logistics.")),
    ("Impostors", "logins",
     "They are in a hurry and have one right detail. Two details must be right. Do not tell which one was wrong."),
    ("Stale customer records", "logins",
     "The import of 2021 left records twice. The one with an account and recent logins is in use."),
    ("Reverse charge", "prices",
     "Businesses outside Germany with a VAT number pay no tax with us; their invoices carry 0 percent."),
    ("Leads and approvals", "billing",
     "Leads look at approvals during the day. They deny what the rules do not cover, and what comes without a reason."),
)  # fmt: skip


def sections() -> list[tuple[str, str, str]]:
    """The policy, a section an article: title, section, body."""
    _, *parts = POLICY.split("\n# ")
    found: list[tuple[str, str, str]] = []
    for part in parts:
        head, _, body = part.partition("\n")
        title = head.partition(" (")[0]
        found.append((f"Policy: {title}", "policy", body))
    return found
