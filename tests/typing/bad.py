"""Mistakes of an author that both type checkers must report."""

import quintain as qn
from quintain.tasks import from_rows
from tests.typing.good import Shelf, Shop, sold_exactly, tasks


@qn.reward
def misspelt_field(outcome: qn.EpisodeView[Shop]) -> float:
    return float(outcome.state.slod == {})  # expect-error


@qn.reward  # expect-error
def no_number(outcome: qn.EpisodeView[Shop]) -> str:
    return outcome.answer


@qn.reward(level="turn")  # expect-error
def wrong_view(outcome: qn.EpisodeView[Shop]) -> float:
    return 1.0


@qn.reward(level="episode")  # expect-error
def no_such_level(outcome: qn.EpisodeView[Shop]) -> float:
    return 1.0


@qn.reward
def of_another_world(outcome: qn.EpisodeView[Shelf]) -> float:
    return float(outcome.state.lamps)


@qn.phase()  # expect-error
def no_predicate(transition: qn.TurnView[Shop]) -> str:
    return transition.turn.reply.message.text


loop = qn.ToolLoop()
qn.ToolLoop(sytem="You sell lamps.")  # expect-error
qn.Config(max_turn=8)  # expect-error
qn.tool(writes=3)  # expect-error
qn.Config(max_turns="8")  # expect-error
qn.Task(id="1", prompt="Sell.", start=Shop(lamps=1))  # expect-error
qn.Task(id="1", prompt="Sell.", start="a shop")  # expect-error
qn.Task("1", prompt="Sell.", start=Shelf())  # expect-error
qn.Verifier(sold_exactly, of_another_world)  # expect-error
qn.Verifier(lambda outcome: 1.0)  # expect-error
qn.Environment("e", tasks=tasks, harness=loop, verifier=qn.Verifier(of_another_world), state=Shop)  # expect-error
qn.Environment("e", tasks=tasks, harness=loop, verifier=qn.Verifier(sold_exactly), state=Shelf)  # expect-error
qn.Environment("e", tasks=tasks, harness="loop", verifier=qn.Verifier(sold_exactly), state=Shop)  # expect-error
qn.Environment("e", tasks=["a task"], harness=loop, verifier=qn.Verifier(sold_exactly), state=Shop)  # expect-error
from_rows("sums", [{"question": "1 + 1?", "answer": 2}], scorer="numeric")  # expect-error
