"""Updates of tickets: what they imply, what they must fulfil, what they leave in the audit."""

from __future__ import annotations

import json
from typing import Any

from tests.products.conftest import Client


def me(api: Client) -> int:
    found: int = api("GET", "users/me")["user"]["id"]
    return found


def agent(api: Client, number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = api("GET", f"users/search?query=email:agent{number}@acme.example")["users"][0]
    return found


def events(answer: dict[str, Any], kind: str) -> dict[str, Any]:
    return {one["field_name"]: one["value"] for one in answer["audit"]["events"] if one["type"] == kind}


def test_creation_has_an_event_for_each_field(api: Client) -> None:
    answer = api("POST", "tickets", {"ticket": {"subject": "S", "comment": {"body": "B"}, "tags": ["b", "a"]}})
    assert api.last.status == 201
    assert api.last.header("location") == answer["ticket"]["url"]
    assert list(events(answer, "Create")) == [
        "subject", "requester_id", "priority", "type", "status", "organization_id", "brand_id", "ticket_form_id",
        "custom_status_id", "tags",
    ]  # fmt: skip
    assert events(answer, "Create")["tags"] == ["a", "b"]
    assert events(answer, "Create")["requester_id"] == str(me(api))
    assert answer["audit"]["events"][0]["type"] == "Comment"


def test_ticket_has_its_keys_in_recorded_order(api: Client) -> None:
    keys = list(api("GET", "tickets/1")["ticket"])
    assert keys == [
        "url",
        "id",
        "external_id",
        "via",
        "created_at",
        "updated_at",
        "generated_timestamp",
        "type",
        "subject",
        "raw_subject",
        "description",
        "priority",
        "status",
        "recipient",
        "requester_id",
        "submitter_id",
        "assignee_id",
        "organization_id",
        "group_id",
        "collaborator_ids",
        "follower_ids",
        "email_cc_ids",
        "forum_topic_id",
        "problem_id",
        "has_incidents",
        "is_public",
        "due_at",
        "tags",
        "custom_fields",
        "satisfaction_rating",
        "sharing_agreement_ids",
        "custom_status_id",
        "fields",
        "followup_ids",
        "ticket_form_id",
        "brand_id",
        "allow_channelback",
        "allow_attachments",
        "from_messaging_channel",
    ]


def test_assignee_brings_his_group_and_opens_a_new_ticket(api: Client) -> None:
    person = agent(api)
    ticket = api.put(1, assignee_id=person["id"], group_id=None)["ticket"]
    assert (ticket["status"], ticket["group_id"]) == ("open", person["default_group_id"])
    assert api.put(2, assignee_id=person["id"], status="pending")["ticket"]["status"] == "pending"


def test_group_clears_an_assignee_who_is_not_a_member(api: Client) -> None:
    level2 = next(one["id"] for one in api("GET", "groups")["groups"] if one["name"] == "Level 2")
    api.put(1, assignee_id=agent(api)["id"])
    assert api.put(1, group_id=level2)["ticket"]["assignee_id"] is None
    member = agent(api, 2)["id"]
    api.put(1, assignee_id=member, group_id=level2)
    assert api("GET", "tickets/1")["ticket"]["assignee_id"] == member


def test_comment_of_a_customer_reopens_and_that_of_an_agent_does_not(api: Client) -> None:
    api.put(1, assignee_id=me(api), status="solved")
    assert api.put(1, comment={"body": "By the way"})["ticket"]["status"] == "solved"
    customer = Client(api.world, "customer1@mail.example")
    assert (
        customer("PUT", "requests/1", {"request": {"comment": {"body": "Still broken"}}})["request"]["status"] == "open"
    )
    assert api("GET", "tickets/1/metrics")["ticket_metric"]["reopens"] == 1


def test_visibility_of_a_comment_follows_the_ticket(api: Client) -> None:
    private = api.ticket(comment={"body": "x", "public": False})
    assert private["is_public"] is False
    api.put(private["id"], comment={"body": "y"})
    api.put(1, comment={"body": "y"})
    assert [one["public"] for one in api("GET", f"tickets/{private['id']}/comments")["comments"]] == [False, False]
    assert [one["public"] for one in api("GET", "tickets/1/comments")["comments"]] == [True, True]


def test_solving_reports_everything_that_is_missing_at_once(api: Client) -> None:
    field = api("POST", "ticket_fields", {"ticket_field": {"type": "text", "title": "Serial", "required": True}})[
        "ticket_field"
    ]
    form = api("GET", "ticket_forms")["ticket_forms"][0]
    api(
        "PUT",
        f"ticket_forms/{form['id']}",
        {"ticket_form": {"ticket_field_ids": [*form["ticket_field_ids"], field["id"]]}},
    )
    before = api.world.db.logical_digest()
    api("PUT", "tickets/1", {"ticket": {"status": "solved", "tags": ["x"], "comment": {"body": "done"}}}, status=422)
    assert api.last.json()["details"]["base"] == [
        {"description": "Assignee: is required when solving a ticket", "error": None, "ticket_field_id": None,
         "ticket_field_type": "FieldAssignee"},
        {"description": "Serial: is required when solving a ticket", "error": None, "ticket_field_id": field["id"],
         "ticket_field_type": "FieldText"},
    ]  # fmt: skip
    assert api.world.db.logical_digest() == before
    fields = [{"id": field["id"], "value": "77"}]
    ticket = api("PUT", "tickets/1", {"ticket": {"status": "solved", "assignee_id": me(api), "custom_fields": fields}})[
        "ticket"
    ]
    assert ticket["custom_fields"] == ticket["fields"] == fields


def test_closed_ticket_refuses_updates_and_can_be_followed_up(api: Client) -> None:
    api("PUT", "tickets/1", {"ticket": {"status": "closed", "assignee_id": me(api)}})
    api("PUT", "tickets/1", {"ticket": {"tags": ["x"]}}, status=422)
    assert api.last.json()["details"]["status"][0]["description"] == "Status: closed prevents ticket update"
    ticket = api.ticket(via_followup_source_id=1)
    assert (ticket["via"]["source"]["rel"], ticket["via"]["source"]["from"]["ticket_id"]) == ("follow_up", 1)
    assert api("GET", "tickets/1")["ticket"]["followup_ids"] == [ticket["id"]]
    api("PUT", "tickets/2", {"ticket": {"status": "open"}})
    api("PUT", "tickets/2", {"ticket": {"status": "new"}}, status=422)


def test_safe_update_with_an_old_stamp_conflicts(api: Client) -> None:
    stamp = api("GET", "tickets/1")["ticket"]["updated_at"]
    api.put(1, tags=["a"])
    api("PUT", "tickets/1", {"ticket": {"safe_update": True, "updated_stamp": stamp, "tags": ["b"]}}, status=409)
    assert api.last.json()["error"] == "UpdateConflict"
    assert api("GET", "tickets/1")["ticket"]["tags"] == ["a"]


def test_update_without_a_change_keeps_the_time(api: Client) -> None:
    before = api("GET", "tickets/1")["ticket"]
    after = api.put(1, priority=before["priority"])["ticket"]
    assert after["updated_at"] == before["updated_at"]
    assert after["generated_timestamp"] > before["generated_timestamp"]


def test_solved_problem_solves_its_incidents(api: Client) -> None:
    api.put(1, type="problem")
    for number in (2, 3):
        api.put(number, type="incident", problem_id=1)
    assert api("GET", "tickets/1")["ticket"]["has_incidents"] is True
    assert [one["id"] for one in api("GET", "tickets/1/incidents")["tickets"]] == [2, 3]
    api("PUT", "tickets/1", {"ticket": {"status": "solved", "assignee_id": me(api), "comment": {"body": "Repaired"}}})
    for number in (2, 3):
        assert api("GET", f"tickets/{number}")["ticket"]["status"] == "solved"
        assert api("GET", f"tickets/{number}/comments")["comments"][-1]["body"] == "Repaired"
    api("PUT", "tickets/4", {"ticket": {"type": "incident", "problem_id": 5}}, status=422)


def test_merge_closes_the_source_and_stays_private(api: Client) -> None:
    job = api("POST", "tickets/2/merge", {"ids": [1], "target_comment": "in", "source_comment": "out"})["job_status"]
    api.world.clock.advance(5)
    job = api("GET", f"job_statuses/{job['id']}")["job_status"]
    assert job["results"] == [{"action": "update", "id": 1, "status": "Updated", "success": True}]
    source, target = api("GET", "tickets/1")["ticket"], api("GET", "tickets/2")["ticket"]
    assert (source["status"], source["tags"]) == ("closed", ["closed_by_merge"])
    assert target["email_cc_ids"] == []
    assert [(one["body"], one["public"]) for one in api("GET", "tickets/2/comments")["comments"]][1:] == [("in", False)]
    assert api("GET", "tickets/1/audits")["audits"][-1]["via"]["source"]["rel"] == "merge"
    api("POST", "tickets/2/merge", {"ids": [3], "target_comment_is_public": True})
    api.world.clock.advance(5)
    assert api("GET", "tickets/2")["ticket"]["email_cc_ids"] == [api("GET", "tickets/3")["ticket"]["requester_id"]]
    api("POST", "tickets/1/merge", {"ids": [4]}, status=422)


def test_deleted_ticket_can_be_restored(api: Client) -> None:
    api("DELETE", "tickets/1", status=204)
    api("GET", "tickets/1", status=404)
    assert api("GET", "tickets/count")["count"]["value"] == 9
    assert [one["id"] for one in api("GET", "deleted_tickets")["deleted_tickets"]] == [1]
    assert api("PUT", "deleted_tickets/1/restore") == {}
    assert api("GET", "tickets/1")["ticket"]["id"] == 1


def test_script_in_a_comment_is_text(api: Client) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=y>"
    found = api("GET", f"tickets/{api.ticket(comment={'body': evil})['id']}/comments")["comments"][0]
    assert found["body"] == evil
    assert "<script" not in found["html_body"]
    assert "<img" not in found["html_body"]
    html = {"html_body": "<p>Hello<br>you</p><script>alert(1)</script>"}
    found = api("GET", f"tickets/{api.ticket(comment=html)['id']}/comments")["comments"][0]
    assert found["body"] == "Hello\nyou"


def test_people_by_mail_are_created_once(api: Client) -> None:
    organization = api(
        "POST", "organizations", {"organization": {"name": "Initech", "domain_names": ["initech.example"]}}
    )
    first = api.ticket(requester={"name": "Bill", "email": "Bill@initech.example"})
    second = api.ticket(requester={"email": "bill@initech.example"}, email_ccs=[{"user_email": "cc@mail.example"}])
    assert first["requester_id"] == second["requester_id"]
    assert first["organization_id"] == organization["organization"]["id"]
    assert len(second["collaborator_ids"]) == 1
    api("POST", "users", {"user": {"name": "B", "email": "BILL@initech.example"}}, status=422)
    assert api.last.json()["details"]["email"][0]["error"] == "DuplicateValue"


def test_upload_becomes_an_attachment_of_one_comment(api: Client) -> None:
    headers = {**api.headers, "content-type": "text/plain"}
    from quintain.resources.web import request

    url = "http://acme.zendesk.localhost/api/v2/uploads?filename=a%20b.txt"
    upload = api.world.respond(request("POST", url, b"text", headers=headers)).json()["upload"]
    ticket = api.ticket(comment={"body": "see file", "uploads": [upload["token"]]})
    file = api("GET", f"tickets/{ticket['id']}/comments")["comments"][0]["attachments"][0]
    assert (file["file_name"], file["size"], file["content_type"]) == ("a b.txt", 4, "text/plain")
    assert api.world.respond(request("GET", file["content_url"])).body == b"text"
    api("POST", "tickets", {"ticket": {"comment": {"body": "x", "uploads": [upload["token"]]}}}, status=422)


def test_upload_expires_after_three_days(api: Client) -> None:
    upload = api("POST", "uploads?filename=a.txt", b"text")["upload"]
    api.world.clock.advance(3 * 86_400)
    api("POST", "tickets", {"ticket": {"comment": {"body": "x", "uploads": [upload["token"]]}}}, status=422)


def test_rating_is_taken_from_the_requester_of_a_solved_ticket(api: Client) -> None:
    customer, other = Client(api.world, "customer1@mail.example"), Client(api.world, "customer2@mail.example")
    rating = {"satisfaction_rating": {"score": "bad", "comment": "slow", "reason": "late"}}
    customer("POST", "tickets/1/satisfaction_rating", rating, status=422)
    api("PUT", "tickets/1", {"ticket": {"status": "solved", "assignee_id": me(api)}})
    other("POST", "tickets/1/satisfaction_rating", rating, status=403)
    customer("POST", "tickets/1/satisfaction_rating", rating)
    assert api("GET", "tickets/1")["ticket"]["satisfaction_rating"]["score"] == "bad"
    customer("POST", "tickets/1/satisfaction_rating", {"satisfaction_rating": {"score": "good"}})
    assert [one["score"] for one in api("GET", "satisfaction_ratings")["satisfaction_ratings"]] == ["good"]
    assert [event["previous_value"] for event in api("GET", "tickets/1/audits")["audits"][-1]["events"]] == ["bad"]


def test_restricted_agent_sees_only_the_tickets_of_his_groups(api: Client) -> None:
    person = agent(api, 2)
    api("PUT", f"users/{person['id']}", {"user": {"ticket_restriction": "assigned"}})
    api.put(3, assignee_id=person["id"])
    restricted = Client(api.world, "agent2@acme.example")
    assert [one["id"] for one in restricted("GET", "tickets")["tickets"]] == [3]
    assert [one["id"] for one in restricted("GET", "search?query=type:ticket")["results"]] == [3]
    restricted("GET", "tickets/1", status=404)
    restricted("GET", "tickets/1/comments", status=404)
    restricted("PUT", "tickets/1", {"ticket": {"tags": ["x"]}}, status=404)


def test_exports_give_each_ticket_once(api: Client) -> None:
    api.world.clock.advance(120)
    whole = [one["id"] for one in api("GET", "incremental/tickets?start_time=0")["tickets"]]
    seen: list[int] = []
    path = "incremental/tickets/cursor?start_time=0&per_page=3"
    while True:
        page = api("GET", path)
        seen += [one["id"] for one in page["tickets"]]
        path = page["after_url"].partition("/api/v2/")[2]
        if page["end_of_stream"]:
            break
    assert seen == whole == [*range(1, 11)]
    api("GET", "incremental/tickets", status=400)
    api("GET", f"incremental/tickets?start_time={int(api.world.clock.now)}", status=422)
    api("GET", "incremental/tickets/cursor?cursor=x", status=400)


def test_user_is_deleted_softly_and_merged(api: Client) -> None:
    people = api("GET", "users?role=end-user")["users"]
    api("DELETE", f"users/{people[0]['id']}", status=422)
    merged = api("PUT", f"users/{people[0]['id']}/merge", {"user": {"id": people[1]["id"]}})["user"]
    assert merged["id"] == people[1]["id"]
    assert api("GET", "tickets/1")["ticket"]["requester_id"] == people[1]["id"]
    user = api("POST", "users", {"user": {"name": "Gone", "email": "gone@mail.example"}})["user"]
    assert list(user)[:4] == ["id", "url", "name", "email"]
    assert api("DELETE", f"users/{user['id']}")["user"]["active"] is False
    assert json.dumps(api("GET", "users")).count("Gone") == 0
    api("POST", "users", {"user": {"name": "Back", "email": "gone@mail.example"}})
