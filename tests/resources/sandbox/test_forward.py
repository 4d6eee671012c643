"""From inside: ordinary clients in a network that ends at `lo` reach what is on the list, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
import json
import shutil
import signal
import socket
import ssl
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from quintain.resources.sandbox import forward
from tests.resources.sandbox.servers import between, play, serving

PYTHON = "/usr/bin/python3"
ROOT = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"]
BASE = [*ROOT, "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]


class Ended(NamedTuple):
    status: int
    out: str
    err: str


def bubblewrap(*binds: str) -> list[str]:
    program = shutil.which("bwrap")
    if program is None or not Path(PYTHON).exists():
        pytest.skip(f"needs bubblewrap and {PYTHON}")
    return [program, "--unshare-all", "--die-with-parent", *BASE, *binds]


@pytest.fixture(autouse=True, scope="module")
def isolation() -> None:
    tried = subprocess.run([*bubblewrap(), "/bin/true"], env={}, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"bubblewrap cannot isolate here: {tried.stderr}")


async def inside(path: Path, program: Sequence[str], binds: Sequence[str] = (), prefix: Sequence[str] = ()) -> Ended:
    """Run a program in a sandbox whose way out is the socket at a path."""
    door = ["--bind", str(path), "/run/proxy", "--ro-bind", forward.__file__, "/run/forward.py", *binds]
    command = [*bubblewrap(*door), "--", *prefix, PYTHON, "-I", "-S", "/run/forward.py", "/run/proxy", *program]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env={"LC_ALL": "C.UTF-8"}, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


def script(source: str, *arguments: object) -> list[str]:
    return [PYTHON, "-I", "-c", source, *map(str, arguments)]


# -- clients


@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="needs /usr/bin/curl")
def test_curl_reaches_allowed_hosts_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(until=b"x=1") as server:
            url = f"http://a.test:{server.port}/"
            async with between(tmp_path, f"a.test:{server.port}", f"127.0.0.1:{server.port}") as (_, path):
                assert (await inside(path, ["curl", "-sS", "-d", "x=1", url])).out == "hello"
                assert (await inside(path, ["curl", "-sS", "--proxytunnel", "-d", "x=1", url])).out == "hello"
                refused = await inside(path, ["curl", "-sS", "http://b.test/"])
                assert refused.out.startswith(
                    "b.test:80 is not allowed in this sandbox\nThis sandbox may reach: a.test:"
                )
                refused = await inside(path, ["curl", "-sSv", "https://b.test/"])
                assert refused.status != 0
                assert "403 b.test:443 is not allowed in this sandbox" in refused.err

    play(story())


URLLIB = """
import sys, urllib.error, urllib.request
for size in (0, 2**24):  # The answer comes before the end of the second.
    print(urllib.request.urlopen(sys.argv[1], data=b"x=1" + bytes(size)).read().decode())
for url in ("http://b.test/", "https://b.test/"):
    try:
        urllib.request.urlopen(url, data=bytes(2**24))
    except urllib.error.URLError as error:
        print(error)
"""


def test_urllib_reaches_allowed_hosts_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(until=b"x=1") as server:
            async with between(tmp_path, f"a.test:{server.port}", f"127.0.0.1:{server.port}") as (_, path):
                ended = await inside(path, script(URLLIB, f"http://a.test:{server.port}/"))
            refused = "403{} b.test:{} is not allowed in this sandbox"
            tunnel = f"<urlopen error Tunnel connection failed: {refused.format('', 443)}>"
            assert ended.out.splitlines() == ["hello", "hello", f"HTTP Error {refused.format(':', 80)}", tunnel], ended

    play(story())


def certificate(folder: Path, host: str) -> ssl.SSLContext:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    key, made = str(folder / "key.pem"), str(folder / "cert.pem")
    words = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={host}".split()
    words += ["-addext", f"subjectAltName=DNS:{host},DNS:*.{host}", "-keyout", key, "-out", made]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context


def wheel() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("demo.py", "")
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("demo-1.0.dist-info/RECORD", "")
    return file.getvalue()


def answer(kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


PIP = "import sys; sys.path.insert(0, '/lib-of-pip'); from pip._internal.cli.main import main; sys.exit(main())"


def test_pip_installs_through_the_proxy(tmp_path: Path) -> None:
    found = importlib.util.find_spec("pip")
    if found is None or found.origin is None:
        pytest.skip("needs pip beside this interpreter")
    libraries = str(Path(found.origin).parents[1])
    context = certificate(tmp_path, "index.test")

    async def story() -> None:
        file = answer("application/octet-stream", wheel())
        async with serving(file, tls=context) as files:
            page = f'<a href="https://files.index.test:{files.port}/demo-1.0-py3-none-any.whl">demo</a>'
            async with serving(answer("text/html", page.encode()), tls=context) as index:
                local = [f"127.0.0.1:{one.port}" for one in (index, files)]
                entries = (f"index.test:{index.port}", f"*.index.test:{files.port}", *local)
                async with between(tmp_path, *entries) as (proxy, path):
                    binds = ["--ro-bind", libraries, "/lib-of-pip"]
                    binds += ["--ro-bind", str(tmp_path / "cert.pem"), "/run/cert.pem"]
                    options = ["--cert", "/run/cert.pem", "--no-cache-dir", "--disable-pip-version-check"]
                    options += ["--no-deps", "-d", "/tmp/out"]
                    options += ["--index-url", f"https://index.test:{index.port}/simple", "demo"]
                    ended = await inside(path, script(PIP, "download", *options), binds)
                assert "Successfully downloaded demo" in ended.out, ended
                assert [(one.host, one.is_allowed) for one in proxy.log] == [
                    ("index.test", True),
                    ("files.index.test", True),
                ]

    play(story())


# -- nothing else

PROBE = """
import json, os, socket, sys
def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(5)
        return one.connect_ex(address)
found = {
    "allowed": connect(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))),
    "host": connect(socket.AF_INET, ("192.0.2.1", 80)),
    "abstract": connect(socket.AF_UNIX, "\\0" + sys.argv[2]),
    "inside": connect(socket.AF_INET, ("127.0.0.1", 3128)),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "variables": {name: value for name, value in os.environ.items() if "proxy" in name.lower()},
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
}
try:
    os.wait()
except ChildProcessError:
    found["children"] = 0
print(json.dumps(found))
"""


def test_sandbox_has_no_other_way_out(tmp_path: Path) -> None:
    async def story() -> None:
        name = f"quintain-test-{tmp_path.name}"
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0{name}")
            abstract.listen()
            async with serving() as server, between(tmp_path, f"127.0.0.1:{server.port}") as (proxy, path):
                program = script(PROBE, server.port, name)
                ended = await inside(path, program, ["--setenv", "NO_PROXY", "*", "--setenv", "all_proxy", "x"])
        found = json.loads(ended.out)
        assert (found["allowed"], found["abstract"], found["inside"]) == (111, 111, 0)
        assert found["host"] == 101  # ENETUNREACH
        assert found["interfaces"] == ["lo"]
        assert found["variables"] == dict.fromkeys(
            ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), forward.URL
        )
        assert found["descriptors"] == [0, 1, 2]
        assert found["children"] == 0
        assert (server.got, [one.host for one in proxy.log]) == ([], [""])

    play(story())


def test_the_program_is_what_ends(tmp_path: Path) -> None:
    async def story() -> None:
        async with between(tmp_path) as (_, path):
            assert await inside(path, ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]) == (7, "out\n", "err\n")
            assert (await inside(path, ["/bin/sh", "-c", "kill -TERM $$"])).status == 128 + signal.SIGTERM
            broken = await inside(path, ["/bin/sh", "-c", "/usr/bin/yes | /usr/bin/head -n 1"])
            assert broken == (0, "y\n", "")  # What Python ignores, a program would complain about.
            assert await inside(path, ["none"]) == (127, "", "forward: none: No such file or directory\n")
            assert (await inside(path, ["/usr"])).status == 126
            listening = f"import socket, os, sys; s = socket.create_server(('127.0.0.1', {forward.PORT})); "
            taken = script(f"{listening}import subprocess; sys.exit(subprocess.call(sys.argv[1:]))")
            ended = await inside(path, ["/bin/true"], prefix=taken)
            assert (ended.status, ended.err) == (125, "forward: 127.0.0.1:3128: Address already in use\n")

    play(story())


ORPHAN = """
import os, select, signal, socket, subprocess, sys
reads, writes = os.pipe()
os.dup2(writes, 9)
command = [*sys.argv[1:], "/bin/sh", "-c", "echo ready; exec sleep 100 >/dev/null 9>&-"]
program = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(9,))
os.close(writes)
os.close(9)
print(program.stdout.read(), os.read(reads, 1))  # No other process holds them.
name = b"forward.py"
left = [int(one) for one in os.listdir("/proc") if one.isdigit() and int(one) not in (1, os.getpid(), program.pid)]
left = [pid for pid in left if name in open(f"/proc/{pid}/cmdline", "rb").read()]
assert len(left) == 1, left
life = os.pidfd_open(left[0])
socket.create_connection(("127.0.0.1", 3128)).close()
program.kill()
select.select([life], [], [])
print(socket.socket().connect_ex(("127.0.0.1", 3128)))
"""


def test_forwarder_ends_with_the_program(tmp_path: Path) -> None:
    async def story() -> None:
        async with between(tmp_path) as (_, path):
            ended = await inside(path, [], prefix=script(ORPHAN))
            assert ended == (0, "b'ready\\n' b''\n111\n", "")

    play(story())


FLOOD = """
import socket, sys
request = f"CONNECT 127.0.0.1:{sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode()
clients = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(int(sys.argv[2]))]
for client in clients:
    client.sendall(request + b"question")
    client.shutdown(socket.SHUT_WR)
answers = []
for client in clients:
    answer = b""
    while data := client.recv(65536):
        answer += data
    answers.append(len(answer.partition(b"\\r\\n\\r\\n")[2]))
print(set(answers))
"""


def limited(descriptors: int) -> list[str]:
    return ["/bin/sh", "-c", f'ulimit -S -n {descriptors}; exec "$@"', "-"]


@pytest.mark.parametrize(("descriptors", "clients"), [(256, 100), (24, 30)])
def test_a_flood_is_carried_in_turn(tmp_path: Path, descriptors: int, clients: int) -> None:
    async def story() -> None:
        large = bytes(300_000)
        async with serving(large, until=b"never") as server:
            async with between(tmp_path, f"127.0.0.1:{server.port}") as (proxy, path):
                flood = [*limited(256), *script(FLOOD, server.port, clients)]
                ended = await inside(path, flood, prefix=limited(descriptors))
            assert ended == (0, f"{{{len(large)}}}\n", "")
            assert len(proxy.log) == clients
            assert {(one.up_bytes, one.down_bytes, one.note) for one in proxy.log} == {(8, len(large), "")}

    play(story())


FEW = """
import select, socket, sys
request = f"CONNECT 127.0.0.1:{sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode()
clients = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(10)]
for client in clients:
    client.sendall(request)
for _ in range(7):
    answered = []
    while len(answered) < 4:
        answered = select.select(clients, [], [])[0]
    more = select.select([one for one in clients if one not in answered], [], [], 0.05)[0]
    print(len(more), end=" ")
    clients.remove(answered[0])
    answered[0].close()
"""


def test_as_many_are_carried_as_there_are_descriptors_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(until=b"never") as server, between(tmp_path, f"127.0.0.1:{server.port}") as (_, path):
            ended = await inside(path, script(FEW, server.port), prefix=limited(24))
        assert ended == (0, "0 0 0 0 0 0 0 ", "")

    play(story())


def test_a_proxy_that_is_gone_is_a_connection_that_ends(tmp_path: Path) -> None:
    async def story() -> None:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as dead:
            dead.bind(str(tmp_path / "dead"))
        gone = "import socket; s = socket.create_connection(('127.0.0.1', 3128))\ntry: print(s.recv(1))\n"
        ended = await inside(tmp_path / "dead", script(f"{gone}except ConnectionResetError: print(b'')"))
        assert ended == (0, "b''\n", "")

    play(story())
