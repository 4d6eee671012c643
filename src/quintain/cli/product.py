"""`quintain product`: starts a product at a real address."""

from __future__ import annotations

import json
import time
from importlib.util import find_spec

import click

from quintain.errors import UsageError

from . import console, options


@click.command(short_help="Start a product, such as Zendesk, at a real address.")
@click.argument("name", type=click.Choice(["zendesk"]))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="TCP port; 0 for any free one."
)
@click.option(
    "--tickets", type=click.IntRange(0, 100_000), default=10, show_default=True, help="Tickets to begin with."
)
@click.option(
    "--step",
    type=click.FloatRange(0.001),
    default=1.0,
    show_default=True,
    help="Seconds that a request takes in the world.",
)
@click.option(
    "--wall", type=click.FloatRange(0), default=0.0, help="Seconds in the world per real second, instead of --step."
)
@options.json
def product(*, name: str, port: int, tickets: int, step: float, wall: float, as_json: bool) -> None:
    """Start the product NAME on this machine, for client libraries, curl and browsers, until Ctrl-C.

    Prints its address, and the e-mail and token with which a client authenticates. A person signs in to its pages with
    the same e-mail, and the token as password. The world begins now.
    """
    if missing := [one for one in ("apsw", "jinja2", "selectolax", "uvicorn") if find_spec(one) is None]:
        raise UsageError(f"a product needs {' and '.join(missing)}: pip install 'quintain[web]'")
    from quintain.products import zendesk
    from quintain.resources.web import door

    world = zendesk.account(begin=float(int(time.time())))
    zendesk.populate(world, tickets=tickets)
    zendesk.index(world)
    world.step_s = step
    served = door.Door(wall=wall)
    served.add(world.subdomain, world, [zendesk.TOKEN])

    def ready(url: str) -> None:
        facts = {
            "url": url,
            "email": zendesk.ADMIN,
            "token": zendesk.TOKEN,
            "pages": url + "/agent",
            "control": url + door.CONTROL,
        }
        if as_json:
            console.write([json.dumps(facts) + "\n"])
        else:
            click.echo(f"{name}: {url}  e-mail: {facts['email']}  token: {facts['token']}")

    door.run(served, port, ready)
