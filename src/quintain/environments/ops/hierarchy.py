"""H: an orchestrator with six tools, each of which gives a task to the subagent of a service.

A subagent has the tools of its service and sees the request alone. Its episode is a thread of the record;
`inner_traces` returns each as a trace with rewards of its own, linked to the turn of the orchestrator that asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec

import quintain as qn
from quintain import codec
from quintain.environment import settings
from quintain.harness import Model
from quintain.harnesses import AgentLoop, Subagent, delegations
from quintain.harnesses.held import Errand, Host
from quintain.harnesses.subagents import delegated
from quintain.models import Cast, Scripted
from quintain.trace import End, Level, Message, Reply, Reward, ToolCall

from .description import SERVICES, Service, digest, tables
from .draft import Truth
from .harness import rules
from .verifier import share

ASK = "ask_"
SYSTEM = """\
You operate one service of a company's production: {service}. You get one request from the engineer on call, who sees \
nothing but your last reply. Use your tools, then answer with the names, numbers and times that were asked for, and no \
others. Change something only if the request says so. What your tools show: {shows}."""
ORCHESTRATION = """

You have no tools of the services yourself. Each `ask_` tool gives a request to the subagent of a service, which sees \
nothing but your request and answers in words. Name in it all that it must know."""
Prompt = Annotated[str, msgspec.Meta(min_length=1, max_length=20_000)]


def system(service: Service) -> str:
    """Returns the system prompt of a service's subagent."""
    shows = (f"{name} ({one.about})" for name, one in tables().items() if one.service == service)
    return SYSTEM.format(service=service, shows="; ".join(shows))


SUBAGENTS = {
    service: Subagent(
        harness=qn.ToolLoop(system(service)), description=f"Operates {service}.", role=service, max_turns=20
    )
    for service in SERVICES
}
"""Subagents by service."""


def _asking(service: Service) -> Callable[..., Errand]:
    shows = ", ".join(name for name, one in tables().items() if one.service == service)

    def ask(self: qn.State, prompt: Prompt) -> Errand:
        del self

        async def run(host: Host) -> str:
            return await delegated(SUBAGENTS[service], prompt, session=host.session, model=host.model)

        return Errand(run)

    ask.__name__ = f"{ASK}{service}"
    ask.__doc__ = (
        f"Ask the subagent of {service}, which reads {shows}, or order a change there.\n\n"
        "Args:\n    prompt: The request, with all that it must know."
    )
    ask.__annotations__ = {"prompt": Prompt, "return": Errand}
    return qn.tool(writes=())(ask)


Desk: type[qn.State] = msgspec.defstruct(  # type: ignore[assignment]  # its base says what it is
    "Desk", [], bases=(qn.State,), namespace={f"{ASK}{one}": _asking(one) for one in SERVICES}, module=__name__
)
"""The six tools of the orchestrator, for the harness to hold."""


class Orchestrator(AgentLoop):
    """Loop of the orchestrator.

    Attributes:
        description: Digest of the description, for the fingerprint.
    """

    def __init__(self) -> None:
        super().__init__(system=rules() + ORCHESTRATION, tools=(Desk(),))
        self.description = digest()
        self.setup.append([(name, settings(one), settings(one.harness)) for name, one in SUBAGENTS.items()])


# -- inner traces


class Inner(msgspec.Struct, frozen=True):
    """Episode of a subagent.

    Attributes:
        turn: Index of the orchestrator's turn that asked for it, in the outer record.
        service: Its service.
        trace: Its record: the turns with the rewards that they got, and the reward `reported`.
    """

    turn: int
    service: Service
    trace: qn.Trace


def inner_traces(task: qn.Task[Any], trace: qn.Trace) -> Iterator[Inner]:
    """Yields the episodes of the subagents in a record of the hierarchical environment, in order.

    The score of each is `reported`: the share of the facts in its report, of those that a part of the solution wants
    from its service; the part that fits best counts.

    Args:
        task: The task that the record is of.
        trace: The record; it stays as it is.
    """
    truth: Truth = task.truth
    for one in delegations(trace):
        service = one.turns[0].role
        text = one.turns[-1].reply.message.text
        value = max((share(text, part, task) for part in truth.parts if part.service == service), default=0.0)
        reward = Reward(name="reported", level=Level.TRAJECTORY, raw=value, value=value)
        turns = [msgspec.structs.replace(turn, index=n, role="agent", thread=0) for n, turn in enumerate(one.turns)]
        tags = trace.tags | {"service": service, "outer": f"{trace.task}/{trace.member}", "outer_turn": str(one.turn)}
        is_valid = trace.failure is None
        yield Inner(
            one.turn,
            service,  # type: ignore[arg-type]  # only subagents have threads here
            msgspec.structs.replace(
                trace,
                environment=f"ops_{service}",
                task=f"{trace.task}/{one.thread}",
                tags=tags,
                turns=turns,
                end=End.TERMINATED if is_valid else trace.end,
                reason="the agent answered" if is_valid else trace.reason,
                rewards=[reward],
                criteria=(*dict.fromkeys(own.name for turn in turns for own in turn.rewards), "reported"),
                score=value if is_valid else None,
            ),
        )


# -- the oracle


class RoutedOracle:
    """Agent that plays the solution of a task by parts: the orchestrator asks, a subagent calls and reports."""

    name = "routed_oracle"

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        """Returns a script for each role."""
        truth: Truth = task.truth
        asked = [(f"{ASK}{part.service}", {"prompt": part.ask}) for part in truth.parts]
        report = ("report", {"findings": msgspec.to_builtins(truth.findings)})
        roles: dict[str, Model] = {"agent": Scripted.calls([*asked, report], task.answer)}
        for service in SERVICES:
            replies: list[Reply] = []
            for part in truth.parts:
                if part.service == service:
                    replies += _replies(part.calls, part.say)
            roles[service] = Scripted(replies)
        return Cast(**roles)


def _replies(calls: Any, say: str) -> Iterator[Reply]:
    for n, (name, arguments) in enumerate(calls):
        yield Reply(Message("assistant", calls=(ToolCall(f"call_{n}", name, codec.text(arguments)),)))
    yield Reply(Message("assistant", say))
