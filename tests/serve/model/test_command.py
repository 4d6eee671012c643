"""Programs, started as a run starts them: what they get, how they end, and what their children can do with secrets."""

from __future__ import annotations

import asyncio
import gc
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.errors import UsageError
from quintain.harnesses import Dialogue
from quintain.models import OpenAI
from quintain.replay import replay
from quintain.serve.model import CommandHarness
from quintain.trace import Reply, Trace
from tests.models.server import KEY, answer, completion, serving
from tests.serve.model.bell import Model, env, says

KIT = """
import json, os, subprocess, sys, time, urllib.error, urllib.request

def post(url, body, **headers):
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)

def ask(*said):
    messages = [{"role": "user", "content": one} for one in said]
    key = "Bearer " + os.environ["OPENAI_API_KEY"]
    return post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"messages": messages}, Authorization=key)
"""


def program(folder: Path, code: str) -> str:
    """The command of a program."""
    file = folder / "program.py"
    (folder / "kit.py").write_text(KIT)
    file.write_text("from kit import *\n" + code)
    return shlex.join([sys.executable, str(file)])


def play(command: str, *replies: Reply | Exception, config: qn.Config | None = None, **options: Any) -> Trace:
    """The record of one episode with a program, which must replay to the byte."""
    model = options.pop("model", None) or Model(*replies)
    task = env.tasks("test")[0]
    chosen = env.replace(config=config, harness=CommandHarness(command, own=env.harness, mcp=False, **options))

    async def both() -> Trace:
        trace = (await qn.rollout(chosen, task, model)).trace
        if trace.failure is None or trace.failure.kind != "agent_timeout":
            assert (await replay(chosen, task, trace)).to_bytes() == trace.to_bytes()
        return trace

    return asyncio.run(both())


def test_a_program_is_the_agent(tmp_path: Path) -> None:
    command = program(tmp_path, "print(ask(sys.stdin.read()))")
    trace = play(command, says("", ("ring", {})), says("It rang."))
    assert (trace.score, trace.reason) == (1.0, "the agent answered")
    assert trace.turns[0].added[0].text == "You are a ringer.\n\nRing the bell once."


def test_a_command_says_where_the_prompts_go(tmp_path: Path) -> None:
    code = """
assert sys.argv[1:] == ["--system=You are a ringer.", "Ring the bell once."] and not sys.stdin.read()
given = os.environ["QUINTAIN_GIVEN"]
assert open(given + "/system.txt").read() == "You are a ringer."
assert open(given + "/prompt.txt").read() == "Ring the bell once."
assert json.load(open(given + "/mcp.json"))["mcpServers"]["quintain"]["url"] == os.environ["QUINTAIN_MCP_URL"]
assert os.listdir(".") == [] and os.environ["HOME"] != os.getcwd()
ask("?")
"""
    trace = play(program(tmp_path, code) + " --system={system} {prompt}", says("Hello."))
    assert trace.failure is None, trace.failure


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("ask('?'); print(os.environ['OPENAI_API_KEY']); sys.exit(3)", "agent_run_error", "ended with status 3: …***"),
        ("print(os.environ['OPENAI_BASE_URL'].split('/m/')[1])", "agent_run_error", "…***/v1"),
        ("print('no key')", "agent_run_error", "never got a reply of its model: …no key"),
        ("os.kill(os.getpid(), 15)", "agent_run_error", "was ended by SIGTERM"),
        ("os.kill(os.getpid(), 9)", "kill_shaped", "was killed from outside"),
        ("ask('?'); time.sleep(60)", "agent_timeout", "asked for nothing for 0.5 s"),
    ],
)
def test_a_program_that_breaks_is_a_failure_of_the_harness(tmp_path: Path, code: str, kind: str, words: str) -> None:
    idle = 0.5 if kind == "agent_timeout" else 60.0
    trace = play(program(tmp_path, code), says("Hello."), idle_s=idle)
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind, trace.score) == ("H", kind, None)
    assert words in trace.failure.message


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    trace = play(str(tmp_path / "nothing"))
    assert trace.failure is not None
    assert "cannot be started" in trace.failure.message


def test_an_episode_has_its_time(tmp_path: Path) -> None:
    trace = play(program(tmp_path, "time.sleep(600)"), config=qn.Config(episode_timeout_s=0.3))
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("H", "agent_timeout")


def test_a_program_goes_with_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"""
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}} {{os.getcwd()}}")
ask("?")
time.sleep(600)
"""
    trace = play(program(tmp_path, code), RuntimeError("the model is gone"))
    assert trace.failure is not None
    *numbers, work = pids.read_text().split()
    assert not any(alive(int(number)) for number in numbers)
    assert not Path(work).parent.exists(), "its folders too"


def test_a_program_that_will_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintain.serve.model.command._GRACE_S", 0.1)
    number = tmp_path / "pid"
    code = f"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({str(number)!r}, "w").write(str(os.getpid()))
ask("?")
time.sleep(600)
"""
    assert play(program(tmp_path, code), RuntimeError("the model is gone")).failure is not None
    assert not alive(int(number.read_text()))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_limit_ends_the_program_too(tmp_path: Path) -> None:
    code = "ask('?'); print(ask('more')); time.sleep(600)"
    trace = play(program(tmp_path, code), *(says("", ("ring", {})) for _ in range(9)), config=qn.Config(max_turns=3))
    assert (trace.reason, len(trace.turns), trace.failure) == ("max_turns", 3, None)


def test_a_model_that_fails_is_not_the_programs_fault(tmp_path: Path) -> None:
    trace = play(program(tmp_path, "print(ask('?')); time.sleep(600)"), RuntimeError("no weights"))
    assert trace.failure is not None
    assert trace.failure.component == "model"


def test_a_program_that_leaves_before_its_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entered = tmp_path / "entered"

    async def model(request: Any) -> Reply:
        entered.touch()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    code = f"""
import threading
threading.Thread(target=ask, args=("?",), daemon=True).start()
while not os.path.exists({str(entered)!r}):
    time.sleep(0.01)
"""
    trace = play(program(tmp_path, code), model=model)
    assert trace.failure is not None
    assert "never got a reply" in trace.failure.message
    gc.collect()
    assert not caplog.records, "and nothing is left that nobody waits for"


def test_the_last_words_must_be_words(tmp_path: Path) -> None:
    code = """
tool = {"type": "function", "function": {"name": "bash"}}
key = "Bearer " + os.environ["OPENAI_API_KEY"]
body = {"messages": [{"role": "user", "content": "?"}], "tools": [tool]}
status, said = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, Authorization=key)
assert said["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "bash", said
"""
    trace = play(program(tmp_path, code), says("", ("bash", {"command": "id"})), tools=("bash",))
    assert (trace.reason, len(trace.turns), trace.turns[0].steps) == ("the program ended", 1, ())


# Secrets.


def test_the_real_key_stays_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "WANTED"):
        monkeypatch.setenv(name, "the-real-one")
    code = "print(ask(json.dumps([n for n, v in os.environ.items() if 'the-real-one' in v])))"
    trace = play(program(tmp_path, code), says("Hello."), passed=("WANTED",))
    assert json.loads(trace.turns[0].added[0].text) == ["WANTED"]


def test_endpoint_replies_are_recorded_and_its_key_stays_secret(tmp_path: Path) -> None:
    """From the program through us to a server that gives token ids, and back."""
    said = completion("Hello.", token_ids=[8, 9], logprobs={"content": [{"logprob": -0.1}, {"logprob": -0.2}]})
    said |= {"prompt_token_ids": [1, 2, 3], "policy_version": 4}
    command = program(tmp_path, "ask(json.dumps(sorted(os.environ.values())))")
    chosen = env.replace(harness=CommandHarness(command, own=env.harness, mcp=False))

    async def both() -> tuple[Trace, dict[str, str]]:
        async with serving(answer(said)) as server:
            model = OpenAI("m", base_url=server.url, api_key=KEY)
            trace = (await qn.rollout(chosen, env.tasks("test")[0], model)).trace
            await model.aclose()
            return trace, server.headers[0]

    trace, headers = asyncio.run(both())
    (turn,) = trace.turns
    assert turn.reply.tokens is not None
    assert (turn.reply.tokens.prompt, turn.reply.tokens.completion) == ([1, 2, 3], [8, 9])
    assert (turn.reply.tokens.logprobs, turn.reply.policy_version) == ([-0.1, -0.2], 4)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in turn.added[-1].text


CHILD = """
def child(code):
    found = f"import sys; sys.path.insert(0, {sys.path[0]!r}); from kit import *; {code}"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr
"""


def test_a_child_gets_nothing_for_the_secrets_that_it_inherits(tmp_path: Path) -> None:
    code = (
        CHILD
        + """
ask("first")
stolen = child("print(ask('child')[0])")
parents = child(f"print(open('/proc/{os.getppid()}/cmdline').read().count('sk-'))")
acted = child("print(post(os.environ['QUINTAIN_MCP_URL'], {})[0])")
ask(json.dumps([stolen, parents, acted]))
"""
    )
    trace = play(program(tmp_path, code), says("Hello."), says("Bye."))
    assert [turn.added[-1].text for turn in trace.turns][1] == '["403", "0", "403"]'


def test_a_child_gets_nothing_for_a_header_either(tmp_path: Path) -> None:
    """A child with the port of an admitted connection is refused."""
    code = (
        CHILD
        + """
import http.client, urllib.parse
where = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
line = http.client.HTTPConnection(where.hostname, where.port)
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
def say(words):
    body = json.dumps({"messages": [{"role": "user", "content": words}]})
    line.request("POST", where.path + "/chat/completions", body, headers)
    return line.getresponse().read()
say("first")
mine = f"127.0.0.1:{line.sock.getsockname()[1]}"
key = "'Bearer ' + os.environ['OPENAI_API_KEY']"
forged = f"**{{'X-Forwarded-For': {mine!r}, 'Forwarded': 'for={mine}', 'Authorization': {key}}}"
asked = "{'messages': [{'role': 'user', 'content': 'child'}]}"
say(child(f"print(post(os.environ['OPENAI_BASE_URL'] + '/chat/completions', {asked}, {forged})[0])"))
"""
    )
    trace = play(program(tmp_path, code), says("Hello."), says("Bye."), says("Oh."))
    assert [turn.added[-1].text for turn in trace.turns] == ["first", "403"]


def test_unbound_harness_admits_child_processes(tmp_path: Path) -> None:
    code = CHILD + "ask(child(\"print(ask('child')[0])\"))"
    trace = play(program(tmp_path, code), says("Hello."), says("Bye."), bound=False)
    assert [turn.added[-1].text for turn in trace.turns] == ["child", "200"]


def test_another_process_gets_nothing_either(tmp_path: Path) -> None:
    """One that is no child, belongs to the same user, and reads the environment of the program while it runs."""
    told, heard = tmp_path / "told", tmp_path / "heard"
    code = f"""
file = open({str(told)!r} + ".new", "w"); file.write(str(os.getpid())); file.close()
os.rename(file.name, {str(told)!r})
while not os.path.exists({str(heard)!r}):
    time.sleep(0.01)
ask(open({str(heard)!r}).read())
"""
    spy = f"""
while not os.path.exists({str(told)!r}):
    time.sleep(0.01)
pid = open({str(told)!r}).read()
lines = open(f"/proc/{{pid}}/environ").read().split("\\0")
os.environ.update(line.split("=", 1) for line in lines if line)
file = open({str(heard)!r} + ".new", "w"); file.write(str(ask("spy")[0])); file.close()
os.rename(file.name, {str(heard)!r})
"""
    with subprocess.Popen([sys.executable, "-c", KIT + spy]) as process:
        try:
            trace = play(program(tmp_path, code), says("Hello."))
        finally:
            process.kill()
    assert trace.turns[0].added[-1].text == "403"


# The environment's own harness.


def test_a_program_speaks_with_a_user(tmp_path: Path) -> None:
    """Each turn starts the program with the messages so far; the address of an earlier start is gone."""
    before = str(tmp_path / "before")
    code = f"""
if os.path.exists({before!r}):
    assert post(open({before!r}).read() + "/chat/completions", {{}})[0] == 404
open({before!r}, "w").write(os.environ["OPENAI_BASE_URL"])
ask(sys.stdin.read())
"""
    task = qn.Task(id="one", prompt="", start=env.tasks("test")[0].world(), roles={"user": "You want a bell."})
    talk = qn.Environment(
        "talk",
        tasks=lambda split: [task],
        harness=CommandHarness(program(tmp_path, code), own=Dialogue(system="Be kind."), mcp=False),
        verifier=env.verifier,
        state=env.state,
    )

    async def model(request: Any) -> Reply:
        if request.role == "user":
            return says(["Hello.", "Ring it.", "###STOP###"][sum(m.role == "user" for m in request.messages)])
        words = request.messages[-1].text
        return says("", ("ring", {})) if words.endswith("Ring it.") else says(f"Heard {len(words)}.")

    async def both() -> Trace:
        trace = (await qn.rollout(talk, task, model)).trace
        assert (await replay(talk, task, trace)).to_bytes() == trace.to_bytes()
        return trace

    trace = asyncio.run(both())
    assert trace.failure is None, trace.failure
    asked = [turn.added[0].text for turn in trace.turns if turn.role == "agent" and turn.added]
    assert asked[0] == "Be kind.\n\nHello."
    assert asked[1].endswith("user: Hello.\n\nassistant: Heard 16.\n\nuser: Ring it.")
    assert (trace.score, trace.reason) == (1.0, "the user ended the conversation")


def test_many_at_once(tmp_path: Path) -> None:
    command = program(tmp_path, "ask(sys.stdin.read())")
    chosen = env.replace(harness=CommandHarness(command, own=env.harness, mcp=False))

    class Agents:
        name = "agents"

        def model(self, task: Any, seed: int) -> Model:
            return Model(says("", ("ring", {})), says("Done."))

    async def run() -> list[Trace]:
        return [
            trace
            async for group in qn.rollouts(chosen, Agents(), chosen.tasks("test"), group=4)
            for trace in group.traces
        ]

    assert [trace.score for trace in asyncio.run(run())] == [1.0] * 4


@pytest.mark.parametrize(("command", "options"), [("", {}), ("a 'b", {}), ("a", {"idle_s": 0.0})])
def test_a_harness_that_cannot_be(command: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        CommandHarness(command, **options)


def test_program_leaves_no_descriptors_open(tmp_path: Path) -> None:
    before = list(Path("/proc/self/fd").iterdir())
    for _ in range(2):
        play(program(tmp_path, "ask('?')"), says("Hello."))
    assert len(list(Path("/proc/self/fd").iterdir())) <= len(before) + 1
