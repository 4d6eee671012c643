"""Secrets of a request's caller: in `X-Secrets`, as clients of two protocols send them, or in the body.

The bound and the checks are the same in every protocol, and no refusal shows a value.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from quintain.serve.errors import Refused
from quintain.serve.http.asgi import HttpRequest, parsed
from quintain.serve.http.auth import presented

from .secrets import MOST, NOTHING, Packed, Secrets

HEADER = b"x-secrets"


def brought(request: HttpRequest, said: Mapping[str, str]) -> Secrets:
    """Returns the secrets of a request, for the episode or session that it begins; `said` are those in its body.

    The server's own key is left out, though one client always sends it.

    Raises:
        Refused: The header is unreadable, or differs from the body; or it is too much.
    """
    sent = dict[str, Packed]()
    if header := request.header(HEADER):
        try:
            sent = parsed(base64.b64decode(header, validate=True), dict[str, Packed])
        except (ValueError, msgspec.DecodeError):  # What it says is a secret, and so is what is wrong with it.
            raise Refused('X-Secrets is unreadable: base64 of {"NAME": {"value": "..."}} is wanted') from None
    values = {name: one.value for name, one in sent.items()}
    for name in values.keys() & said.keys():
        if values[name] != said[name]:
            raise Refused(f"the secret {name!r} is one in X-Secrets and another one in the body")
    values |= said
    size = sum(map(len, (*values, *values.values())))
    if size > MOST:
        raise Refused(f"the secrets have {size:,} characters with their names, and may have {MOST:,}")
    values = {name: value for name, value in values.items() if value and value != presented(request)}
    return Secrets(values) if values else NOTHING
