"""The proxy at its end and at its limits: nothing is left behind, and no stream of bytes gets where it may not."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import socket
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quintain.errors import UsageError
from quintain.resources.sandbox.proxy import Bounds, Proxy, allow
from tests.resources.sandbox.servers import Names, ask, between, play, serving


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_closed_proxy_leaves_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        hangs = asyncio.Event()

        async def hang(host: str, port: int) -> list[str]:
            hangs.set()
            await asyncio.Event().wait()
            return []

        with socket.create_server(("127.0.0.1", 0)) as server:  # It takes connections, and says nothing.
            entry = f"127.0.0.1:{server.getsockname()[1]}"
            tunnel = f"CONNECT {entry} HTTP/1.1\r\n\r\n".encode()
            before, tasks = descriptors(), len(asyncio.all_tasks())
            proxy = Proxy(allow((entry, "hang.test:1")), tmp_path / "proxy", resolve=hang)
            await proxy.start()
            clients: list[asyncio.StreamWriter] = []
            for data, answer in (
                (b"CONN", b""),
                (b"CONNECT hang.test:1 HTTP/1.1\r\n\r\n", b""),
                (tunnel, b"200"),
                (f"POST http://{entry} HTTP/1.1\r\nContent-Length: {2**40}\r\n\r\n".encode() + bytes(2**22), b""),
                (b"CONNECT evil.test:1 HTTP/1.1\r\n\r\n", b"403"),  # The refusal lingers, since this end stays open.
            ):
                reader, writer = await asyncio.open_unix_connection(str(tmp_path / "proxy"))
                writer.write(data)
                assert answer in (await reader.readline() if answer else b"")
                clients.append(writer)
            await hangs.wait()
            unseen = socket.socket(socket.AF_UNIX)
            unseen.connect(str(tmp_path / "proxy"))
            assert len(asyncio.all_tasks()) == tasks + 5 + 2 * 2  # Two of them carry both ways.
            await proxy.close()
            await proxy.close()
            unseen.close()
            assert len(asyncio.all_tasks()) == tasks
            assert descriptors() == before + len(clients)
            assert not (tmp_path / "proxy").exists()
            with pytest.raises(UsageError, match="already"):
                await proxy.start()
            for writer in clients:
                writer.transport.abort()

    play(story())


def test_a_connection_that_nobody_took_yet_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        before = descriptors()
        async with between(tmp_path) as (_, path):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                await asyncio.sleep(0)  # Accepted, and its task has not begun.
        assert descriptors() == before

    play(story())


def test_bugs_of_the_proxy_are_raised(tmp_path: Path) -> None:
    async def broken(host: str, port: int) -> list[str]:
        raise RuntimeError("this resolver is broken")

    async def story() -> None:
        async with Proxy(allow(("a.test:1",)), tmp_path / "proxy", resolve=broken):
            await ask(tmp_path / "proxy", b"CONNECT a.test:1 HTTP/1.1\r\n\r\n")

    with pytest.raises(RuntimeError, match="this resolver"):
        play(story())


def test_a_socket_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    async def story(path: Path) -> None:
        before = descriptors()
        with pytest.raises(OSError, match=r"in use|too long"):
            await Proxy((), path).start()
        assert descriptors() == before

    (tmp_path / "there").touch()
    play(story(tmp_path / "there"))
    play(story(tmp_path / ("long" * 40)))


def test_only_its_owner_may_connect(tmp_path: Path) -> None:
    async def story() -> None:
        async with Proxy((), tmp_path / "a"), Proxy((), tmp_path / "b", mode=0o666):
            assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [0o600, 0o666]

    play(story())


def test_proxy_continues_when_descriptors_are_free_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintain.resources.sandbox.proxy._PAUSE", 0.01)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with between(tmp_path) as (proxy, path):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as client:
                soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
                lowest = os.dup(0)
                os.close(lowest)
                resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
                try:
                    client.connect(str(path))
                    client.send(b"?\r\n\r\n")
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(loop.sock_recv(client, 1), 0.05)
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert (await loop.sock_recv(client, 100)).startswith(b"HTTP/1.1 400 ")
            assert len(proxy.log) == 1

    play(story())


# -- anything at all


PIECES = st.sampled_from(
    [
        *(
            "CONNECT",
            "GET",
            "POST",
            "http://",
            "https://",
            "HTTP/1.1",
            "HTTP/1.0",
            "@",
            ":",
            ":80",
            "/",
            "//",
            "\\",
            "#",
            "?",
        ),
        *("good.test", "evil.test", "127.0.0.1", "[::1]", "2130706433", "%0d%0a", "0", "4", ",", ".", "..", "chunked"),
        *("Host:", "Content-Length:", "Transfer-Encoding:", "Connection:", " ", "\r\n", "\r\n\r\n", "GOOD", "EVIL"),
    ]
)
STREAMS = st.lists(
    st.one_of(
        PIECES.map(str.encode), st.sampled_from([b" ", b"\r\n", b"\r\n\r\n", b"GOOD", b"EVIL"]), st.binary(max_size=4)
    ),
    max_size=30,
)
BRIEF = Bounds(header_seconds=0.005, idle_seconds=0.005)
STARTS = st.sampled_from([b"", b"CONNECT ", b"GET http://", b"CONNECT good.test:GOOD HTTP/1.1\r\n\r\n"])


@settings(max_examples=150)
@given(STARTS, STREAMS, st.lists(st.integers(0, 200), max_size=3), st.booleans())
@example(b"CONNECT ", [b"good.test:EVIL HTTP/1.1\r\n\r\n"], [], False)
def test_no_stream_breaks_it_or_gets_where_it_may_not(
    tmp_path_factory: pytest.TempPathFactory, start: bytes, stream: list[bytes], cuts: list[int], eof: bool
) -> None:
    async def story(folder: Path) -> None:
        names = Names()
        async with serving() as server, serving() as other:
            entries = (f"good.test:{server.port}", f"127.0.0.1:{server.port}")
            async with between(folder, *entries, names=names, bounds=BRIEF) as (proxy, path):
                data = (start + b"".join(stream)).replace(b"GOOD", b"%d" % server.port)
                data = data.replace(b"EVIL", b"%d" % other.port)
                reader, writer = await asyncio.open_unix_connection(str(path))
                for first, last in itertools.pairwise([0, *sorted(cuts), len(data)]):
                    writer.write(data[first:last])
                    await asyncio.sleep(0)
                if eof:
                    writer.write_eof()
                answer = await reader.read()
                writer.close()
            (one,) = proxy.log
            assert other.got == []
            assert set(names.asked) <= {"good.test"}
            assert not one.is_allowed or (one.host in {"good.test", "127.0.0.1"} and one.port == server.port)
            assert one.is_allowed or answer == b"" or answer[9:12] in {b"400", b"403", b"408", b"431"}

    play(story(tmp_path_factory.mktemp("random")))
