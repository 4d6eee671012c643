"""What a request brings of its caller's secrets: in `X-Secrets`, as clients of two protocols can, or in its body.

The bound and the checks are the same in every protocol, and no refusal says a word of a value.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from quintain.serve.asgi import Request, parsed
from quintain.serve.door import presented
from quintain.serve.errors import Refused

from .secrets import MOST, NOTHING, Packed, Secrets

HEADER = b"x-secrets"


def brought(request: Request, said: Mapping[str, str]) -> Secrets:
    """What a request confides to the episode, or to the session, that it begins.

    The key that opens this server's own door is not the environment's business, though one client always sends it.

    Args:
        request: With its header.
        said: What stands in its body.

    Raises:
        Refused: The header is unreadable, or says other than the body; or it is too much.
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
