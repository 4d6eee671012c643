"""`quintain serve`: put environments behind the protocols that trainers and agents speak."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import click
from click.core import ParameterSource

from quintain import plugins
from quintain.errors import UsageError

from . import completion, folders, operation, options, stdio

_OF_BOTH = frozenset({"envs", "user", "options", "stdio"})


@click.command(short_help="Serve environments to trainers and agents.")
@click.argument("envs", metavar="ENV...", nargs=-1, required=True, shell_complete=completion.environments)
@click.option("--host", "address", default="127.0.0.1", show_default=True, help="Interface to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="TCP port; 0 for any free one."
)
@click.option("--user", metavar="AGENT", help="Model of the simulated user, named like --agent of `run`.")
@operation.operated
@stdio.single
@options.made_with
def serve(
    envs: tuple[str, ...],
    *,
    address: str,
    port: int,
    user: str | None,
    options: tuple[str, ...],
    **more: Any,
) -> None:
    """Serve each ENV over the Open Reward Standard, OpenEnv, MCP and a control plane, on one port.

    ENV is a registered name, package.module:attr or path/to/file.py:attr. Prints one line when it is ready, and
    episodes that fail on stderr; ends in order, with status 0, on SIGTERM.
    """
    missing = [
        name
        for name in ("httptools", "mcp", "prometheus_client", "starlette", "uvicorn", "uvloop", "websockets")
        if find_spec(name) is None
    ]
    if missing:
        raise UsageError(f"serving needs {', '.join(missing)}: pip install 'quintain[serve]'")

    from .options import pairs

    given = pairs("--option", options)
    wish = operation.ServeOptions.taken(more)
    over_stdio, chosen = more.pop("stdio"), stdio.StdioOptions(**more)
    _nothing_in_vain(over_stdio=over_stdio)
    from quintain.serve.mcp import too_old

    if over_stdio:
        if words := too_old():
            raise UsageError(words)
        stdio.serve(envs, chosen, user=user, options=given)
        return
    if words := too_old():
        click.echo(f"MCP is not served: {words}", err=True)
    served = [plugins.environment(spec, **given) for spec in envs]
    manifests = [folders.Manifest.of(env, spec, given, user=user) for env, spec in zip(served, envs, strict=True)]
    offer = operation.ServedEnvironments(served, manifests, plugins.agent(user) if user else None)
    sys.exit(operation.serve(offer, wish, address=address, port=port))


def _nothing_in_vain(*, over_stdio: bool) -> None:
    """Raises UsageError for options that would have no effect.

    Raises:
        UsageError: One of a server was given with --stdio, or one of --stdio without it.
    """
    context, of_stdio = click.get_current_context(), stdio.StdioOptions.__struct_fields__
    vain = [
        option.opts[0]
        for option in context.command.params
        if option.name not in _OF_BOTH
        and (option.name in of_stdio) != over_stdio
        and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    ]
    if vain:
        whose = "--stdio listens nowhere, so leave out" if over_stdio else "only with --stdio is there a use for"
        raise UsageError(f"{whose} {', '.join(vain)}")
