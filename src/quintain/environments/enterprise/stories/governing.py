"""Stories of control: the close of a month, contracts, policies, privacy, audits."""

from __future__ import annotations

from quintain.environments.enterprise.draft import CompanyDraft
from quintain.environments.enterprise.goals import ref

_OPEN = "2025-05"
"""The month that is still open."""


def accrue(d: CompanyDraft) -> str:
    d.memory["clerk"] = d.act_as("finance.staff")
    (debit,) = d.pick("SELECT name FROM ledger_accounts WHERE kind = 'expense' AND active = 1 ORDER BY id")
    (credit,) = d.pick("SELECT name FROM ledger_accounts WHERE kind = 'liability' AND active = 1 ORDER BY id")
    title, amount = d.fresh("Accrual"), d.number(5, 90) * 100
    d.memory["entry"] = title
    d.look("finance_find_fiscal_periods", status="open")
    accounts = {"debit_account": debit, "credit_account": credit}
    d.do("finance_create_journal_entry", title=title, period=_OPEN, **accounts, amount=amount)
    return f"For the close of {_OPEN} enter the accrual {title!r}: {amount} euros, debit {debit!r}, credit {credit!r}."


def post(d: CompanyDraft) -> str:
    d.act_as("finance.staff", but=(d.memory["clerk"],))
    d.look("finance_get_journal_entry", journal_entry=d.memory["entry"])
    d.do("finance_post_journal_entry", journal_entry=d.memory["entry"])
    return f"Look at the draft {d.memory['entry']!r} of {d.name(d.memory['clerk'])}. The voucher is here, so post it."


def finish_tasks(d: CompanyDraft) -> str:
    d.act_as("finance.staff")
    d.look("finance_get_fiscal_period", fiscal_period=_OPEN)
    sql = """SELECT c.id FROM close_tasks c JOIN fiscal_periods p ON p.id = c.period
             WHERE p.month = ? AND c.status = 'open' ORDER BY c.id"""
    for (number,) in d.desk.db.execute(sql, _OPEN):
        d.do("finance_complete_close_task", close_task=f"CT-{number}")
    return f"All work for {_OPEN} is done. Tick off every close task of that month that is still open."


def close_month(d: CompanyDraft) -> str:
    d.act_as("finance.controller")
    d.look("finance_get_fiscal_period", fiscal_period=_OPEN)
    d.do("finance_close_fiscal_period", fiscal_period=_OPEN)
    d.do("finance_open_fiscal_period", fiscal_period="2025-06")
    return f"Close {_OPEN} and open 2025-06 for postings."


def propose_renewal(d: CompanyDraft) -> str:
    d.memory["lawyer"] = d.act_as("corporate.legal")
    title, value, ends = d.pick("SELECT title, value, ends_on FROM contracts WHERE status = 'active' ORDER BY id")
    percent, new_end = d.number(1, 9), d.day(d.number(520, 800))
    new_value = value + value * percent // 100
    d.memory |= {"contract": title, "percent": percent, "new_end": new_end}
    d.look("corporate_get_contract", contract=title)
    d.do("corporate_propose_contract_renewal", contract=title, new_end=new_end, new_value=new_value)
    return (
        f"{title!r} ends on {ends}. The other side agrees to go on until {new_end} for {percent} percent more than "
        "today, "
        "rounded down to a whole euro. Propose the renewal."
    )


def approve_renewal(d: CompanyDraft) -> str:
    d.act_as("corporate.manager", but=(d.memory["lawyer"],))
    m = d.memory
    d.look("corporate_get_contract", contract=m["contract"])
    renewal = ref("contract_renewals", contract=m["contract"], new_end=m["new_end"], status="proposed")
    verb = "approve" if m["percent"] <= 5 else "decline"
    d.do(f"corporate_{verb}_contract_renewal", contract_renewal=renewal)
    return (
        f"Decide on the renewal of {m['contract']!r} until {m['new_end']}: when it gets more than 5 percent dearer "
        "than it "
        "is today, decline; otherwise approve."
    )


def draft_contract(d: CompanyDraft) -> str:
    d.memory["owner"] = d.act_as("corporate.legal")
    (supplier,) = d.pick("SELECT name FROM suppliers WHERE status = 'approved' ORDER BY id")
    title, value, starts, ends = d.fresh("Maintenance contract"), d.number(20, 150) * 100, d.day(30), d.day(760)
    d.memory |= {"contract": title, "value": value, "supplier": supplier}
    terms = {"supplier": supplier, "value": value, "starts_on": starts, "ends_on": ends}
    d.look("procurement_find_suppliers", text=supplier)
    d.do("corporate_create_contract", title=title, **terms)
    d.do(
        "corporate_add_contract_clause", contract=title, kind="notice_period", body="Three months to the end of a year."
    )
    d.do("corporate_send_contract_to_review", contract=title)
    return (
        f"Draft {title!r} with the supplier {supplier}: {value} euros a year, from {starts} to {ends}, with a "
        "clause on "
        "the notice period (three months to the end of a year), and send it to review."
    )


def sign(d: CompanyDraft) -> str:
    d.act_as("corporate.manager", limit=d.memory["value"], but=(d.memory["owner"],))
    d.look("corporate_get_contract", contract=d.memory["contract"])
    d.do("corporate_sign_contract", contract=d.memory["contract"])
    return f"{d.memory['contract']!r} with {d.memory['supplier']} is reviewed. Sign it."


def take_privacy(d: CompanyDraft) -> str:
    d.act_as("corporate.staff")
    number, name, customer = d.pick(
        """SELECT c.id, c.name, k.name FROM contacts c JOIN customers k ON k.id = c.customer
           WHERE c.opted_out = 0 ORDER BY c.id"""
    )
    d.memory |= {"contact": f"CON-{number}", "person": name}
    d.look("sales_find_contacts", text=name, customer=customer)
    what = {"person": name, "kind": "deletion", "contact": f"CON-{number}"}
    d.do("corporate_record_privacy_request", **what, received_on=d.day(0))
    return (
        f"{name} of {customer} (CON-{number}) wants all data deleted; the letter came today. Record the privacy "
        "request."
    )


def answer_privacy(d: CompanyDraft) -> str:
    d.act_as("corporate.legal")
    request = ref("privacy_requests", contact=d.memory["contact"], kind="deletion")
    d.look("corporate_find_privacy_requests", kind="deletion", status="received")
    d.do("corporate_verify_privacy_request", privacy_request=request)
    d.do("corporate_answer_privacy_request", privacy_request=request)
    return f"The deletion request of {d.memory['person']} ({d.memory['contact']}) is genuine. Verify and answer it."


def begin_audit(d: CompanyDraft) -> str:
    auditor = d.act_as("corporate.auditor")
    department = d.rng.choice(["finance", "procurement", "it", "logistics"])
    number, asked = d.pick(
        """SELECT e.id, e.name FROM employees e JOIN teams t ON t.id = e.team
           WHERE e.status = 'active' AND t.department = ? ORDER BY e.id""",
        department,
    )
    title, wanted = d.fresh(f"Audit {department}"), d.fresh("Sample of approvals")
    d.memory |= {"audit": title, "wanted": wanted, "asked": number, "auditor": auditor}
    d.do("corporate_plan_audit", title=title, department=department, auditor=d.name(auditor))
    d.do("corporate_start_audit", audit=title)
    d.do("corporate_raise_audit_request", title=wanted, audit=title, asked=asked)
    return (
        f"Set up {title!r} of the department {department} with yourself as auditor and start it. First request: "
        f"{wanted!r}, asked of {asked}."
    )


def fulfil(d: CompanyDraft) -> str:
    d.sign_in(d.memory["asked"])
    d.look("corporate_find_audit_requests", asked=d.name(), status="open")
    d.do("corporate_fulfil_audit_request", audit_request=d.memory["wanted"], answer="It lies in the audit folder.")
    return (
        f"The auditors want {d.memory['wanted']!r} from you. It lies in the audit folder: fulfil the request and "
        "say so."
    )


def close_audit(d: CompanyDraft) -> str:
    d.sign_in(d.memory["auditor"])
    d.look("corporate_get_audit", audit=d.memory["audit"])
    d.do("corporate_close_audit", audit=d.memory["audit"])
    return f"Nothing was found and all is answered: close {d.memory['audit']!r}."


def write_policy(d: CompanyDraft) -> str:
    d.memory["owner"] = d.act_as("corporate.legal")
    d.memory["policy"] = d.fresh("Policy on gifts")
    d.look("corporate_find_policies", text="policy")
    d.do("corporate_create_policy", title=d.memory["policy"])
    return f"We need a policy called {d.memory['policy']!r}, owned by you. Create the draft; somebody else approves it."


def approve_policy(d: CompanyDraft) -> str:
    d.act_as("corporate.manager", but=(d.memory["owner"],))
    d.look("corporate_find_policies", status="draft")
    d.do("corporate_approve_policy", policy=d.memory["policy"])
    d.do("corporate_acknowledge_policy", policy=d.memory["policy"])
    return (
        f"Approve {d.memory['policy']!r} of {d.name(d.memory['owner'])}, and acknowledge it yourself as the first one."
    )


CLOSE = (accrue, post, finish_tasks, close_month)
RENEWAL = (propose_renewal, approve_renewal)
CONTRACT = (draft_contract, sign)
PRIVACY = (take_privacy, answer_privacy)
AUDIT = (begin_audit, fulfil, close_audit)
POLICY = (write_policy, approve_policy)
