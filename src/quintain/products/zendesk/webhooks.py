"""Webhooks: their records, and invocations with signature and retries.

What goes to another product of the world is a request to it; what goes anywhere else is kept, and answered with 200.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from quintain.resources.web import Exchange, ResourceSpec, Routes, request
from quintain.resources.web.rows import count, select, update

from .account import Desk, Invalid, listed
from .tables import Webhook, WebhookCall
from .wire import API, only

ROUTES = Routes()
route = ROUTES.route
ATTEMPTS = 4
RETRY_S = 60.0
"""Longest wait that an answer may ask for; seconds between attempts where it asks for none."""
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(world: Desk) -> str:
    """Returns a new identifier of 26 characters that begins with the time."""
    drawn = hashlib.blake2b(str(world.new_number()).encode(), digest_size=10).digest()
    number = int(world.clock.now * 1000) << 80 | int.from_bytes(drawn, "big")
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in reversed(range(26)))


def invoke(world: Desk, name: str, body: str) -> None:
    """Sends a body to an active webhook, at once after this request."""
    found = select(world.db, Webhook, "ulid = ? AND status = 'active'", name)
    if found:
        row = world.put(WebhookCall, ulid=ulid(world), webhook_id=found[0].id, body=body)
        world.later(0.0, "webhook", row.id)


def deliver(world: Desk, argument: Any) -> None:
    """Makes one attempt, and sets the next if the receiver asks for it."""
    row = select(world.db, WebhookCall, "id = ?", int(argument))[0]
    hook = select(world.db, Webhook, "id = ?", row.webhook_id)
    if not hook:
        return
    status, wait = _post(world, hook[0], row)
    if world.met.next(world.noise, "duplicate"):
        _post(world, hook[0], row)
    attempts = [*row.attempts, {"id": f"{row.ulid}{len(row.attempts)}", "invocation_id": row.ulid,
        "occurred_at": world.now,
                                "response": {"status": status},
                                "status": "success" if status < 300 else "failed"}]  # fmt: skip
    retried = (status == 409 or (status in {429, 503} and 0 < wait < RETRY_S)) and len(attempts) < ATTEMPTS
    outcome = "success" if status < 300 else "pending" if retried else "failed"
    update(world.db, row, attempts=attempts, status=outcome)
    if retried:
        world.later(wait or 1.0, "webhook", row.id)


def _post(world: Desk, hook: Any, row: Any) -> tuple[int, float]:
    stamp = world.now
    digest = hmac.new(hook.secret.encode(), f"{stamp}{row.body}".encode(), hashlib.sha256).digest()
    headers = {
        "content-type": "application/json", "x-zendesk-account-id": str(world.account_id),
        "x-zendesk-webhook-id": hook.ulid,
        "x-zendesk-webhook-invocation-id": row.ulid, "x-zendesk-webhook-signature": base64.b64encode(digest).decode(),
        "x-zendesk-webhook-signature-timestamp": stamp,
    }  # fmt: skip
    asked = request(hook.http_method, hook.endpoint, row.body.encode(), headers=headers)
    response = world.receive(asked)
    wait = response.header("retry-after")
    return response.status, float(wait) if wait.isdecimal() else 0.0


def _show(world: Desk, exchange: Exchange, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ids = dict(world.db.execute("SELECT id, ulid FROM zd_webhooks"))
    return [{"id": ids[row["id"]], **{k: v for k, v in row.items() if k not in {"id", "url"}}} for row in rows]


def _clean(world: Desk, exchange: Exchange, fields: dict[str, Any], *, row: Any) -> dict[str, Any]:
    subscriptions = listed(fields.get("subscriptions"))
    if "conditional_ticket_events" in subscriptions and len(subscriptions) > 1:
        words = "Subscriptions: conditional_ticket_events cannot be combined with others"
        raise Invalid("subscriptions", words)
    if row is None:
        fields |= {"ulid": ulid(world), "secret": hashlib.blake2b(f"s{world.last_id}".encode(),
            digest_size=24).hexdigest(),
                   "created_by": str(exchange.caller.id)}  # fmt: skip
    return fields


SPEC = ResourceSpec(
    name="webhook", row=Webhook, path="/api/v2/webhooks", style=API, read="admin", verbs=("list", "create"), show=_show,
    clean=_clean,
)  # fmt: skip
SPEC.mount(ROUTES)


def _need(world: Desk, exchange: Exchange) -> Any:
    return only(world.db, Webhook, "ulid = ?", exchange.params[0])


@route("GET", "/api/v2/webhooks/{webhook}", who="admin")
def show(world: Desk, exchange: Exchange) -> Any:
    """Shows a webhook."""
    return {"webhook": SPEC.one(world, exchange, _need(world, exchange).id)}


@route("PUT", "/api/v2/webhooks/{webhook}", who="admin", status=204)
def change(world: Desk, exchange: Exchange) -> Any:
    """Changes a webhook."""
    given = {k: v for k, v in (exchange.part("webhook")).items() if k not in {"ulid", "secret", "created_by"}}
    SPEC.update(world, exchange, _need(world, exchange), fields=given)


@route("DELETE", "/api/v2/webhooks/{webhook}", who="admin", status=204)
def remove(world: Desk, exchange: Exchange) -> Any:
    """Deletes a webhook that no trigger or automation uses."""
    hook = _need(world, exchange)
    for table in ("zd_triggers", "zd_automations"):
        if world.db.execute(f"SELECT 1 FROM {table} WHERE instr(actions, ?)", hook.ulid):
            raise Invalid("base", "Webhook: is used by a rule")
    SPEC.remove(world, exchange, hook)


@route("POST", "/api/v2/webhooks/test", who="admin", writes=False)
def test(world: Desk, exchange: Exchange) -> Any:
    """Answers as the receiver of a test would."""
    return {"response": {"status": 200, "headers": [], "payload": ""}}


@route("GET", "/api/v2/webhooks/{webhook}/signing_secret", who="admin")
def signing_secret(world: Desk, exchange: Exchange) -> Any:
    """Shows the secret of a webhook's signatures."""
    return {"signing_secret": {"algorithm": "SHA256", "secret": _need(world, exchange).secret}}


@route("GET", "/api/v2/webhooks/{webhook}/invocations", who="admin")
def invocations(world: Desk, exchange: Exchange) -> Any:
    """Lists the invocations of a webhook, the latest first."""
    hook = _need(world, exchange)
    rows = select(world.db, WebhookCall, "webhook_id = ? ORDER BY id DESC LIMIT 100", hook.id)
    found = [
        {"id": one.ulid, "webhook_id": hook.ulid, "status": one.status, "latest_completed_at": one.created_at}
        for one in rows
    ]
    total = count(world.db, WebhookCall, "webhook_id = ?", hook.id)
    return {"invocations": found, "meta": {"has_more": total > len(found), "after_cursor": None, "before_cursor": None}}


@route("GET", "/api/v2/webhooks/{webhook}/invocations/{invocation}/attempts", who="admin")
def attempts(world: Desk, exchange: Exchange) -> Any:
    """Lists the attempts of an invocation."""
    hook = _need(world, exchange)
    rows = select(world.db, WebhookCall, "webhook_id = ? AND ulid = ?", hook.id, exchange.params[1])
    return {"attempts": [one for row in rows for one in row.attempts]}
