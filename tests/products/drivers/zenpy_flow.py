"""Flow of zenpy against a product; prints facts about what it met. Arguments: host:port, e-mail, token."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

import json
import os
import sys
import time
import urllib.request
from typing import Any

from zenpy import Zenpy
from zenpy.lib.api_objects import Comment, Group, GroupMembership, Macro, Organization, Ticket, Trigger, User
from zenpy.lib.exception import APIException, RecordNotFoundException, TooManyValuesException

netloc, email, token = sys.argv[1:4]
os.environ |= {"ZENPY_FORCE_NETLOC": netloc, "ZENPY_FORCE_SCHEME": "http"}
client = Zenpy(subdomain="acme", email=email, token=token, disable_cache=True)
facts: dict[str, Any] = {}


def control(path: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"http://{netloc}/__control__/{path}", method="POST")).close()


def wait(job: Any) -> Any:
    for _ in range(200):
        if job.status == "completed":
            return job
        job = client.job_status(id=job.id)
    raise AssertionError(f"the job stays {job.status}")


def users() -> None:
    user = client.users.create(User(name="Eve", email="eve@mail.example"))
    same = client.users(id=user.id)
    user.name = "Eve Two"
    client.users.update(user)
    facts["user"] = [same.name, client.users(id=user.id).name, client.users.me().email]
    try:
        client.users.create(User(name="Other", email="eve@mail.example"))
    except APIException as error:
        facts["duplicate"] = error.response.json()["details"]["email"][0]["error"]
    job = wait(client.users.create([User(name=f"Bulk {n}", email=f"bulk{n}@mail.example") for n in range(5)]))
    facts["bulk users"] = [one.status for one in job.results]
    facts["search users"] = len(list(client.users.search(query="bulk")))
    try:
        client.users.create([User(name=f"Many {n}") for n in range(101)])
    except TooManyValuesException as error:
        facts["too many"] = str(error)[:60]
    facts["update_or_create"] = (
        client.users.create_or_update(User(name="Eve 3", email="eve@mail.example")).id == user.id
    )
    facts["identities"] = [one.value for one in client.users.identities(id=user.id)]
    facts["deleted"] = client.users.delete(user) is None or True


def tickets() -> None:
    requester = next(iter(client.users.search(query="bulk1")))
    audit = client.tickets.create(
        Ticket(
            subject="Paper jam", description="It is stuck", priority="high", requester_id=requester.id, tags=["printer"]
        )
    )
    ticket = audit.ticket
    facts["created"] = [ticket.status, ticket.priority, ticket.requester.id == requester.id, ticket.tags]
    facts["create events"] = sorted({event["type"] for event in audit.audit.events})
    ticket.status, ticket.assignee_id = "pending", client.users.me().id
    ticket.comment = Comment(body="Please wait", public=True)
    client.tickets.update(ticket)
    facts["updated"] = client.tickets(id=ticket.id).status
    facts["comments"] = [[c.body, c.author.name, c.public] for c in client.tickets.comments(ticket=ticket.id)]
    facts["audits"] = [sorted({e["type"] for e in a.events}) for a in client.tickets.audits(ticket=ticket.id)]
    facts["add tags"] = sorted(client.tickets.add_tags(ticket.id, ["a", "b"]))
    facts["metrics"] = client.tickets.metrics(ticket.id).replies
    try:
        client.tickets(id=10**6)
    except RecordNotFoundException as error:
        facts["missing"] = type(error).__name__
    job = wait(client.tickets.create([Ticket(subject=f"Bulk {n}", description="many") for n in range(3)]))
    ids = [one.id for one in job.results]
    facts["bulk tickets"] = len(ids)
    facts["show_many"] = sorted(one.id for one in client.tickets(ids=ids)) == sorted(ids)
    wait(client.tickets.update([Ticket(id=one, priority="low") for one in ids]))
    facts["bulk update"] = {one.priority for one in client.tickets(ids=ids)} == {"low"}
    wait(client.tickets.merge(target=ids[0], source=[ids[1]], target_comment="in", source_comment="out"))
    facts["merged"] = [client.tickets(id=ids[1]).status, client.tickets(id=ids[1]).tags]
    client.tickets.delete(client.tickets(id=ids[2]))
    facts["deleted ticket"] = ids[2] in [one.id for one in client.tickets.deleted()]
    client.tickets.restore(ids[2])
    facts["restored"] = client.tickets(id=ids[2]).id == ids[2]
    facts["listed"] = len({one.id for one in client.tickets()})


def rest() -> None:
    organization = client.organizations.create(Organization(name="Initech", domain_names=["initech.example"]))
    group = client.groups.create(Group(name="Tier 3"))
    member = client.group_memberships.create(GroupMembership(user_id=client.users.me().id, group_id=group.id))
    facts["domain"] = (
        client.users.create(User(name="Bill", email="bill@initech.example")).organization_id == organization.id
    )
    facts["membership"] = member.group_id == group.id
    found = client.search("paper", type="ticket", priority="high")
    facts["search"] = [one.subject for one in found]
    facts["search count"] = client.search.count("paper", type="ticket")
    facts["search export"] = [one.subject for one in client.search_export("paper", type="ticket")]
    control("advance?seconds=120")
    seen = list(client.tickets.incremental(start_time=1_000_000_000))
    cursor = list(client.tickets.incremental(start_time=1_000_000_000, paginate_by_time=False))
    facts["incremental"] = sorted(t.id for t in seen) == sorted(t.id for t in cursor) and len(seen) > 5
    events = list(client.tickets.metrics_incremental(start_time=1_000_000_000))
    facts["metric events"] = sorted({one.type for one in events})
    view = next(one for one in client.views() if one.title == "All unsolved tickets")
    facts["view"] = len(list(client.views.tickets(view=view))) > 0
    facts["view count"] = [client.views.count(view=view).fresh, client.views.count(view=view).fresh]
    macro = client.macros.create(Macro(title="Up", actions=[{"field": "priority", "value": "urgent"}]))
    facts["macro"] = macro.title
    trigger = client.triggers.create(
        Trigger(
            title="T",
            actions=[{"field": "current_tags", "value": "seen"}],
            conditions={"all": [{"field": "status", "operator": "is", "value": "new"}], "any": []},
        )
    )
    facts["trigger"] = client.tickets.create(Ticket(subject="t", description="d")).ticket.tags
    client.triggers.delete(trigger)
    upload = client.attachments.upload(__file__, target_name="flow.py")
    ticket = client.tickets.create(Ticket(subject="f", comment=Comment(body="file", uploads=[upload.token]))).ticket
    file = next(iter(client.tickets.comments(ticket=ticket))).attachments[0]
    facts["attachment"] = [file.file_name, client.attachments.download(file.id, os.devnull) is not None]
    control("ratelimit?n=1&retry_after=1")
    begin = time.monotonic()
    facts["429"] = [client.users.me().email, time.monotonic() - begin >= 0.9]


users()
tickets()
rest()
sys.stdout.write(f"FACTS {json.dumps(facts)}\n")
