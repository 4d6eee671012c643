"""People come, go, are away and apply."""

from __future__ import annotations

from quintain.environments.enterprise.draft import CompanyDraft
from quintain.environments.enterprise.goals import ref
from quintain.environments.enterprise.seeding import pools


def hire(d: CompanyDraft) -> str:
    """HR enters a new employee."""
    d.act_as("people.staff")
    team, manager = d.pick("SELECT name, lead FROM teams ORDER BY id")
    position, salary = d.pick("SELECT title, band_low FROM positions ORDER BY id")
    (site,) = d.pick("SELECT name FROM sites ORDER BY id")
    (buddy,) = d.pick("SELECT name FROM employees WHERE status = 'active' AND id > 100 ORDER BY id")
    last = "-".join(d.rng.sample(pools()["last"], 2))  # names in the seed have one
    name = f"{d.rng.choice(pools()['first'])} {last}"
    email, begins = f"{last.lower()}@halden.example", d.day(7)
    d.memory |= {"name": name, "site": site, "email": email}
    d.look("people_find_positions", text=position)
    d.do(
        "people_hire_employee",
        name=name,
        email=email,
        team=team,
        position=position,
        manager=d.name(manager),
        site=site,
        hired_on=begins,
        yearly_salary=salary,
    )
    d.do("people_start_onboarding_plan", employee=name, buddy=buddy, starts_on=begins)
    return (
        f"{name} has signed with us! Please enter the new colleague: team {team}, position {position}, manager "
        f"{d.name(manager)}, site {site}, e-mail {email}, first day {begins}, the salary at the bottom of the band. "
        f"No phone and no cost center yet. Then start the onboarding plan for the same day, with {buddy} as buddy."
    )


def sign_contract(d: CompanyDraft) -> str:
    d.act_as("people.manager")
    name = d.memory["name"]
    d.look("people_find_employment_contracts", employee=name)
    d.do("people_sign_employment_contract", employment_contract=ref("employment_contracts", employee=name))
    return f"The employment contract of {name} is still a draft. The paper came back signed by both sides, so mark it."


def equip(d: CompanyDraft) -> str:
    """The IT department provides account, laptop, group and license."""
    d.act_as("it.staff")
    name, login = d.memory["name"], d.memory["email"].split("@")[0]
    sql = """SELECT a.serial, m.name, s.name, min(a.bought_on) FROM assets a JOIN asset_models m ON m.id = a.model
             JOIN sites s ON s.id = a.site WHERE a.status = 'in_stock' AND m.kind = 'laptop' GROUP BY a.model, a.site
             HAVING count(*) > 1 AND count(DISTINCT bought_on) = count(*) ORDER BY a.model, a.site"""
    serial, model, site, _ = d.pick(sql)
    (group,) = d.pick("SELECT name FROM access_groups WHERE sensitive = 0 ORDER BY id")
    (license_,) = d.pick("SELECT name FROM software_licenses WHERE seats > 60 ORDER BY id")
    d.memory |= {"serial": serial, "login": login}
    d.look("it_find_assets", model=model, site=site, status="in_stock")
    d.do("it_create_user_account", login=login, employee=name, mailbox_gb=20)
    d.do("it_assign_asset", asset=serial, employee=name)
    d.do("it_add_group_membership", account=login, access_group=group)
    d.do("it_assign_license_seat", license=license_, account=login)
    return (
        f"Set up {name}, who starts soon: account {login} with a mailbox of 20 GB, of the {model} that lie in "
        f"stock at {site} the one that was bought first, membership in {group}, and a seat of {license_}."
    )


def give_desk(d: CompanyDraft) -> str:
    d.act_as("corporate.facilities")
    name, site = d.memory["name"], d.memory["site"]
    desk = d.get(
        """SELECT k.name FROM desks k JOIN sites s ON s.id = k.site
           WHERE k.status = 'free' AND s.name = ? ORDER BY k.id""",
        site,
    )
    serial = f"BX-{d.number(100_000, 999_999)}"
    d.memory |= {"desk": desk, "badge": serial}
    d.look("corporate_find_desks", site=site, status="free")
    d.do("corporate_assign_desk", desk=desk, employee=name)
    d.do("corporate_issue_badge", serial=serial, employee=name, site=site)
    return (
        f"{name} will sit in {site}: please give the free desk there whose key has the lowest number, and issue "
        "the badge "
        f"{serial} for that site."
    )


def finish_onboarding(d: CompanyDraft) -> str:
    d.act_as("people.staff")
    name = d.memory["name"]
    d.look("people_get_employee", employee=name)
    d.do("people_activate_employee", employee=name)
    (training,) = d.pick(
        """SELECT t.title FROM trainings t WHERE t.seats > (SELECT count(*) FROM training_enrollments e
           WHERE e.training = t.id AND e.status = 'enrolled') ORDER BY t.id"""
    )
    d.do("people_enroll_in_training", training=training, employee=name)
    return (
        f"Everything is ready for {name}: contract signed, account there. Complete the onboarding, so that {name} "
        "counts "
        f"as active, and enroll them in {training!r}."
    )


def dismiss(d: CompanyDraft) -> str:
    """An employee without direct reports, but with equipment, leaves."""
    d.act_as("people.manager")
    sql = """SELECT e.id, e.name FROM employees e WHERE e.status = 'active' AND e.id BETWEEN 100 AND 290
             AND NOT EXISTS (SELECT 1 FROM employees x WHERE x.manager = e.id)
             AND EXISTS (SELECT 1 FROM asset_assignments a WHERE a.employee = e.id AND a.status = 'active')
             AND EXISTS (SELECT 1 FROM desk_assignments k WHERE k.employee = e.id AND k.status = 'active')
             ORDER BY e.id"""
    number, name = d.pick(sql)
    reason = d.rng.choice(["resignation", "retirement", "end_of_contract"])
    last = d.day(d.number(10, 60))
    d.memory |= {"leaver": number, "name": name}
    d.look("people_get_employee", employee=name)
    d.do("people_terminate_employee", employee=name, last_day=last, reason=reason)
    words = {
        "resignation": "has resigned",
        "retirement": "retires",
        "end_of_contract": "leaves at the end of the contract",
    }
    return f"{name} {words[reason]}; the last working day is {last}. Enter the termination."


def take_back(d: CompanyDraft) -> str:
    d.act_as("it.staff")
    name, number = d.memory["name"], d.memory["leaver"]
    sql = """SELECT a.serial FROM assets a JOIN asset_assignments x ON x.asset = a.id
             WHERE x.employee = ? AND x.status = 'active' ORDER BY a.id"""
    d.look("it_find_asset_assignments", employee=name, status="active")
    for (serial,) in d.desk.db.execute(sql, number):
        d.do("it_return_asset", asset=serial)
    d.do("it_disable_user_account", user_account=ref("user_accounts", employee=name, status="active"))
    return (
        f"{name} is leaving us and has handed in everything. Book all equipment back into stock and disable the "
        "account."
    )


def clear_desk(d: CompanyDraft) -> str:
    d.act_as("corporate.facilities")
    name = d.memory["name"]
    desk = d.get(
        """SELECT k.name FROM desks k JOIN desk_assignments a ON a.desk = k.id
           WHERE a.employee = ? AND a.status = 'active'""",
        d.memory["leaver"],
    )
    d.look("corporate_find_desk_assignments", employee=name)
    d.do("corporate_clear_desk", desk=desk)
    d.do("corporate_block_badge", badge=ref("access_badges", employee=name, status="active"))
    return f"Facilities: {name} is gone. Free the desk and block the badge, please."


def close_termination(d: CompanyDraft) -> str:
    d.act_as("people.staff")
    name = d.memory["name"]
    d.look("people_find_terminations", status="open")
    d.do("people_close_termination", termination=ref("terminations", employee=name, status="open"))
    return f"IT and facilities say that they are done with {name}. Check it and close the termination."


def ask_for_leave(d: CompanyDraft) -> str:
    sql = """SELECT e.id FROM employees e JOIN employees m ON m.id = e.manager
             JOIN leave_balances b ON b.employee = e.id AND b.leave_type = 1 AND b.entitled - b.taken >= 8
             WHERE e.status = 'active' AND m.status = 'active' AND e.id > 24 ORDER BY e.id"""
    (number,) = d.pick(sql)
    d.sign_in(number)
    days = d.number(2, 5)
    since, until = d.day(21), d.day(20 + days)
    d.memory |= {"asker": number, "since": since}
    d.do("people_request_leave", leave_type="Annual leave", since=since, until=until, days=days)
    return f"Ask for annual leave for yourself from {since} to {until}; that makes {days} days."


def approve_leave(d: CompanyDraft) -> str:
    asker = d.memory["asker"]
    d.sign_in(int(d.get("SELECT manager FROM employees WHERE id = ?", asker)))
    name, since = d.name(asker), d.memory["since"]
    d.look("people_find_leave_requests", employee=name, status="requested")
    request = ref("leave_requests", employee=name, since=since, status="requested")
    d.do("people_approve_leave_request", leave_request=request)
    return f"{name} of your people has asked for leave from {since} on. Fine with you: approve that request, no other."


def invite(d: CompanyDraft) -> str:
    """Recruiting: screen an application and plan the interview."""
    d.act_as("people.staff")
    sql = """SELECT c.name, o.title FROM applications a JOIN candidates c ON c.id = a.candidate
             JOIN job_openings o ON o.id = a.opening WHERE a.status = 'received' ORDER BY a.id"""
    candidate, opening = d.pick(sql)
    number, interviewer = d.pick(
        "SELECT id, name FROM employees WHERE status = 'active' AND id BETWEEN 30 AND 90 ORDER BY id"
    )
    held = d.day(4)
    d.memory |= {"candidate": candidate, "opening": opening, "interviewer": number}
    application = ref("applications", candidate=candidate, opening=opening)
    d.look("people_find_applications", candidate=candidate)
    d.do("people_screen_application", application=application)
    d.do("people_plan_interview", application=application, interviewer=interviewer, held_on=held)
    return (
        f"{candidate} applied for {opening!r} and looks good. Take the application into screening and plan an "
        "interview "
        f"with {interviewer} on {held}."
    )


def rate(d: CompanyDraft) -> str:
    d.sign_in(d.memory["interviewer"])
    application = ref("applications", candidate=d.memory["candidate"], opening=d.memory["opening"])
    rating = d.number(4, 5)
    d.look("people_find_interviews", interviewer=d.name(), status="planned")
    interview = ref("interviews", application=application, status="planned")
    d.do("people_record_interview", interview=interview, rating=rating, remarks="Convincing in every question.")
    return (
        f"You talked to {d.memory['candidate']} about {d.memory['opening']!r} today, earlier than planned. Record the "
        f"interview with rating {rating} and a remark of your own."
    )


def offer(d: CompanyDraft) -> str:
    d.act_as("people.staff")
    candidate, opening = d.memory["candidate"], d.memory["opening"]
    salary = d.get(
        "SELECT p.band_low FROM job_openings o JOIN positions p ON p.id = o.position WHERE o.title = ?", opening
    )
    begins = d.day(45)
    application = ref("applications", candidate=candidate, opening=opening)
    d.look("people_find_applications", candidate=candidate)
    d.look("people_get_job_opening", job_opening=opening)
    d.do("people_draft_offer", application=application, yearly_salary=salary, starts_on=begins)
    return (
        f"Draft an offer for {candidate} ({opening!r}) from {begins} on, with the salary at the bottom of the band "
        "of the "
        "position. The manager approves it later."
    )


ONBOARDING = (hire, sign_contract, equip, give_desk, finish_onboarding)
OFFBOARDING = (dismiss, take_back, clear_desk, close_termination)
LEAVE = (ask_for_leave, approve_leave)
RECRUITING = (invite, rate, offer)
