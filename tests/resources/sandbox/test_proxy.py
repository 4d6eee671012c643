"""The proxy: what is on the list is reached, and nothing else by any trick; it bears what it is sent and ends clean."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from quintain.resources.sandbox import hosts
from quintain.resources.sandbox.proxy import Bounds, Contact, Proxy, allow
from tests.resources.sandbox.servers import GUARD, OK, Names, ask, between, play, serving

ATTACKS: list[tuple[bytes, int]] = [
    (b"CONNECT evil.test:%d HTTP/1.1\r\nHost: good.test:%d\r\n\r\n", 403),
    (b"GET http://evil.test:%d/ HTTP/1.1\r\nHost: good.test:%d\r\n\r\n", 403),
    (b"GET http://good.test@evil.test:%d/ HTTP/1.1\r\n\r\n", 400),
    (b"GET http://good.test:%d@evil.test:%d/ HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT good.test:x@evil.test:%d HTTP/1.1\r\n\r\n", 400),
    (b"GET http://evil.test\\@good.test:%d/ HTTP/1.1\r\n\r\n", 400),
    (b"GET http://evil.test#@good.test:%d/ HTTP/1.1\r\n\r\n", 400),
    (b"GET http://evil.test:%d?@good.test/ HTTP/1.1\r\n\r\n", 403),
    (b"GET http://good.test%%2eevil.test:%d/ HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT good.test:%d\r\nX: evil HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT good.test:%d@evil.test:443 HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT good.test:%d \r\nHost: evil.test HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT good.test.evil.test:%d HTTP/1.1\r\n\r\n", 403),
    (b"CONNECT xgood.test:%d HTTP/1.1\r\n\r\n", 403),
    (b"CONNECT good.test:80 HTTP/1.1\r\n\r\n", 403),
    (b"CONNECT good.test HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT good.test:%d HTTP/1.1\nHost: x\n\r\n\r\n", 400),
    (b"CONNECT good.test..:%d HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT good.test\0.evil.test:%d HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT 2130706433:%d HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT 0177.0.0.1:%d HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT 0x7f.0.0.1:%d HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT 127.1:%d HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT [::1]:%d HTTP/1.1\r\n\r\n", 403),
    (b"CONNECT [::]:%d HTTP/1.1\r\n\r\n", 403),
    (b"CONNECT [::1%%25lo]:%d HTTP/1.1\r\n\r\n", 400),
    (b"CONNECT 127.0.0.2:%d HTTP/1.1\r\n\r\n", 403),
    (b"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n", 403),
    (b"GET / HTTP/1.1\r\nHost: good.test:%d\r\n\r\n", 400),
    (b"GET https://good.test:%d/ HTTP/1.1\r\n\r\n", 400),
    (b"GET file:///etc/passwd HTTP/1.1\r\n\r\n", 400),
    (b"GET http://good.test:%d/ HTTP/2.0\r\n\r\n", 400),
    (b"GET http://good.test:%d/ HTTP/1.1\r\n folded: x\r\n\r\n", 400),
    (b"GET http://good.test:%d/ HTTP/1.1\r\nA : b\r\n\r\n", 400),
    (b"GET http://good.test:%d/ HTTP/1.1\r\nA: b\rHost: evil\r\n\r\n", 400),
    (b"GET http://good.test:%d/\r\nX: HTTP/1.1\r\n\r\n", 400),
    (b"POST http://good.test:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST http://good.test:%d/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    (b"POST http://good.test:%d/ HTTP/1.1\r\nContent-Length: +1\r\n\r\na", 400),
    (b"POST http://good.test:%d/ HTTP/1.1\r\nContent-Length: 0x1\r\n\r\na", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    (b"\r\n\r\n", 400),
]


def test_no_trick_reaches_a_host(tmp_path: Path) -> None:
    async def story() -> None:
        names = Names()
        async with serving() as server:
            entries = (f"good.test:{server.port}", f"127.0.0.1:{server.port}")
            async with between(tmp_path, *entries, names=names) as (proxy, path):
                for raw, status in ATTACKS:
                    data = raw % ((server.port,) * (raw.count(b"%d"))) if b"%" in raw else raw
                    answer = await ask(path, data)
                    head, _, body = answer.partition(b"\r\n\r\n")
                    assert head.startswith(b"HTTP/1.1 %d " % status), (raw, answer)
                    assert body.endswith(f"may reach: {', '.join(entries)}\n".encode()), answer
                    assert head.count(b"\r\n") == 3, answer
            assert (server.got, names.asked) == ([], [])
            assert not any(one.is_allowed or one.up_bytes or one.down_bytes for one in proxy.log)
            assert len(proxy.log) == len(ATTACKS)

    play(story())


def test_a_host_is_reached_however_it_is_written(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving() as server:
            entries = ("good.test", "*.wild.test", "127.0.0.1")
            async with between(tmp_path, *(f"{one}:{server.port}" for one in entries)) as (proxy, path):
                for host in ("good.test", "GOOD.Test.", "a.B.wild.test", "127.0.0.1", "[::ffff:127.0.0.1]"):
                    tunnel = f"CONNECT {host}:{server.port} HTTP/1.1\r\nHost: evil.test\r\n\r\n"
                    answer = await ask(path, tunnel.encode() + b"in\r\n\r\n")
                    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n" + OK
                    assert server.got.pop() == b"in\r\n\r\n"
                    assert await ask(path, f"GET HTTP://{host}:{server.port}?q HTTP/1.0\r\n\r\n".encode()) == OK
                    assert server.got.pop().startswith(b"GET /?q HTTP/1.1\r\n")
            assert {one.host for one in proxy.log} == {"good.test", "a.b.wild.test", "127.0.0.1"}
            assert proxy.log[0] == Contact("good.test", server.port, is_allowed=True, up_bytes=6, down_bytes=len(OK))

    play(story())


# -- plain requests


def test_a_connection_carries_one_request(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(until=b"body") as server, serving() as other:
            good, evil = (f"http://good.test:{one.port}/" for one in (server, other))
            async with between(tmp_path, f"good.test:{server.port}", f"127.0.0.1:{server.port}") as (proxy, path):
                first = f"POST {good} HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
                for second in (
                    f"GET {evil} HTTP/1.1\r\n\r\n",
                    f"CONNECT good.test:{other.port} HTTP/1.1\r\n\r\n",
                    good,
                ):
                    assert await ask(path, f"{first}{second}".encode()) == OK
                    assert server.got.pop().endswith(b"\r\n\r\nbody")
            assert (len(proxy.log), server.got, other.got) == (3, [], [])

    play(story())


def test_a_request_is_written_anew(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(until=b"abc") as server:
            async with between(tmp_path, f"good.test:{server.port}", f"127.0.0.1:{server.port}") as (_, path):
                given = (
                    "Host: evil.test\r\nProxy-Connection: keep-alive\r\nConnection: X-Mine, content-length, host\r\n"
                )
                given += "X-Mine: 1\r\nX-Theirs:  \xe9 \r\nContent-Length: 3\r\ncontent-length: 3\r\nTE: trailers\r\n"
                request = f"PUT http://good.test:{server.port}/a?b HTTP/1.1\r\n{given}Proxy-Authorization: Basic x\r\n"
                await ask(path, f"{request}\r\nabcdef".encode("latin-1"))
            head = f"Host: good.test:{server.port}\r\nContent-Length: 3\r\nX-Theirs: \xe9\r\nConnection: close"
            assert server.got == [f"PUT /a?b HTTP/1.1\r\n{head}\r\n\r\nabc".encode("latin-1")]

    play(story())
    assert b"Host: good.test\r\n" in hosts.read(b"GET http://good.test:80/ HTTP/1.1").head
    assert b"Host: [::1]:81\r\n" in hosts.read(b"GET http://[0::1]:81 HTTP/1.1").head


def test_a_body_is_whole_or_not_taken_for_it(tmp_path: Path) -> None:
    async def story() -> None:
        head = "POST http://good.test:{} HTTP/1.1\r\nContent-Length: {}\r\n\r\nabc"
        async with serving(until=b"no end") as patient, serving(until=b"abc") as hasty:
            entries = [f"{host}:{one.port}" for one in (patient, hasty) for host in ("good.test", "127.0.0.1")]
            async with between(tmp_path, *entries) as (proxy, path):
                assert await ask(path, head.format(patient.port, 4).encode(), eof=True) == b""
                # An answer that comes before the end of the question ends the question.
                assert await ask(path, head.format(hasty.port, 10**17).encode()) == OK
                large = head.format(hasty.port, 3 * 10**6).encode() + bytes(3 * 10**6 - 3)
                assert await ask(path, large) == OK
            assert [one.note for one in proxy.log] == ["the body ended early", "", ""]

    play(story())


# -- names


def test_a_name_that_leads_inwards_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        names = Names(meta_test=["169.254.169.254"], none_test=[], both_test=["10.0.0.1", "127.0.0.1"])
        async with serving() as server, serving() as other:
            entries = [f"{one}.test:{server.port}" for one in ("meta", "inner", "none", "both")]
            async with between(tmp_path, *entries, f"127.0.0.1:{other.port}", names=names) as (proxy, path):
                for entry in entries:
                    answer = await ask(path, f"CONNECT {entry} HTTP/1.1\r\n\r\n".encode())
                    assert answer.startswith(b"HTTP/1.1 403 "), answer
                    assert b"169.254" not in answer  # Where names lead in this network is nothing to tell.
                assert f"leads to 169.254.169.254:{server.port}, neither public" in proxy.log[0].note
                assert not any(one.is_allowed for one in proxy.log)
            async with between(tmp_path, *entries, f"127.0.0.1:{server.port}", names=names) as (proxy, path):
                assert (await ask(path, f"CONNECT {entries[-1]} HTTP/1.1\r\n\r\n\r\n\r\n".encode())).endswith(OK)
                assert proxy.log[0].is_allowed
            assert other.got == []

    play(story())


def test_the_address_that_was_judged_is_connected_to(tmp_path: Path) -> None:
    async def story() -> None:
        answers = [["127.0.0.1"], ["169.254.169.254"]]

        async def rebind(host: str, port: int) -> list[str]:
            return answers.pop(0)

        async with serving() as server:
            entries = allow((f"good.test:{server.port}", f"127.0.0.1:{server.port}"))
            async with Proxy(entries, tmp_path / "proxy", resolve=rebind):
                request = f"GET http://good.test:{server.port}/ HTTP/1.1\r\n\r\n".encode()
                assert await ask(tmp_path / "proxy", request) == OK
                assert len(answers) == 1
                assert (await ask(tmp_path / "proxy", request)).startswith(b"HTTP/1.1 403 ")

    play(story())


def test_the_resolver_of_the_machine_is_the_default(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving() as server:
            port = server.port
            entries = allow((f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"none.invalid:{port}"))
            async with Proxy(entries, tmp_path / "proxy"):
                for host, status in (("localhost", 200), ("none.invalid", 502)):
                    answer = await ask(tmp_path / "proxy", f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode())
                    assert answer.startswith(f"HTTP/1.1 {status} ".encode())

    play(story())


def test_a_host_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving() as server:
            port = server.port
        names = Names(good_test=["127.0.0.2", "127.0.0.1"])
        entries = (f"good.test:{port}", f"127.0.0.1:{port}", f"127.0.0.2:{port}")
        async with between(tmp_path, *entries, names=names) as (proxy, path):
            answer = await ask(path, f"CONNECT good.test:{port} HTTP/1.1\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 502 good.test cannot be reached: "), answer
            assert proxy.log[0].is_allowed
        async with serving() as server:
            there = [f"{host}:{server.port}" for host in ("good.test", "127.0.0.1", "127.0.0.2")]
            async with between(tmp_path, *there, names=names) as (_, path):  # At one of its addresses.
                assert await ask(path, f"GET http://{there[0]} HTTP/1.1\r\n\r\n".encode()) == OK

    play(story())


# -- bounds


def test_a_tunnel_is_half_closed(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(b"all of it", until=b"never") as server:  # It answers when it has read the end.
            entry = f"127.0.0.1:{server.port}"
            async with between(tmp_path, entry) as (proxy, path):
                answer = await ask(path, f"CONNECT {entry} HTTP/1.1\r\n\r\nquestion".encode(), eof=True)
                assert answer.endswith(b"\r\n\r\nall of it")
            assert server.got == [b"question"]
            assert proxy.log == (Contact("127.0.0.1", server.port, is_allowed=True, up_bytes=8, down_bytes=9),)

    play(story())


@pytest.mark.parametrize(("bounds", "up", "down"), [(Bounds(down_bytes=7), 4, 7), (Bounds(up_bytes=3), 3, 0)])
def test_bytes_are_counted_and_cut(tmp_path: Path, bounds: Bounds, up: int, down: int) -> None:
    async def story() -> None:
        async with serving(until=b"abcd") as server:
            entry = f"127.0.0.1:{server.port}"
            async with between(tmp_path, entry, bounds=bounds) as (proxy, path):
                request = f"CONNECT {entry} HTTP/1.1\r\n\r\nabcd".encode()
                assert (await ask(path, request)).partition(b"\r\n\r\n")[2] == OK[:down]
                assert (await ask(path, request)).startswith(b"HTTP/1.1 429 ")
            (one,) = proxy.log
            assert (one.up_bytes, one.down_bytes) == (up, down)
            assert "in all" in one.note
            assert server.got == [b"abcd"[:up]]

    play(story())


def test_headers_are_short_and_come_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with between(tmp_path, bounds=Bounds(header_bytes=100, requests=2)) as (proxy, path):
            assert (await ask(path, b"GET / HTTP/1.1\r\nX: " + bytes(10_000), eof=True)).startswith(b"HTTP/1.1 431 ")
            assert await ask(path, b"GET / HTTP/1.1\r\nX: ", eof=True) == b""
            assert (await ask(path, b"", eof=True)).startswith(b"HTTP/1.1 429 ")
        notes = ["the header has more than 100 bytes", "it ended before its request did"]
        assert [one.note for one in proxy.log] == notes
        async with between(tmp_path, bounds=Bounds(header_seconds=0.05)) as (proxy, path):
            assert (await ask(path, b"GET / HTTP/1.1\r\nX: ")).startswith(b"HTTP/1.1 408 ")
            assert proxy.log[0].note == "the request took too long"

    play(story())


def test_proxy_waits_for_nothing_without_end(tmp_path: Path) -> None:
    async def story() -> None:
        forever = asyncio.Event()

        async def never(host: str, port: int) -> list[str]:
            await forever.wait()
            return []

        path, slow = tmp_path / "proxy", allow(("slow.test:1",))
        async with Proxy(slow, path, bounds=Bounds(connect_seconds=0.05), resolve=never) as proxy:
            answer = await ask(path, b"CONNECT slow.test:1 HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 504 slow.test did not answer in time")
        async with serving(until=b"never") as server:
            entry = f"127.0.0.1:{server.port}"
            async with between(tmp_path, entry, bounds=Bounds(idle_seconds=0.05)) as (proxy, path):
                assert b" 200 " in await ask(path, f"CONNECT {entry} HTTP/1.1\r\n\r\n".encode())
                assert proxy.log[0].note == "nothing moved for 0.05 s"

    play(story())


def test_active_connection_is_not_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        loop, ahead = asyncio.get_running_loop(), 0.0
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + ahead)
        with socket.create_server(("127.0.0.1", 0)) as host:
            host.setblocking(False)
            entry = f"127.0.0.1:{host.getsockname()[1]}"
            async with between(tmp_path, entry, bounds=Bounds(idle_seconds=GUARD * 10)) as (proxy, path):
                reader, writer = await asyncio.open_unix_connection(str(path))
                writer.write(f"CONNECT {entry} HTTP/1.1\r\n\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")
                server, _ = await loop.sock_accept(host)
                for _ in range(3):
                    ahead += GUARD * 8
                    writer.write(b"x")
                    assert await loop.sock_recv(server, 1) == b"x"
                assert proxy.log[0].note == ""
                ahead += GUARD * 11
                assert await reader.read() == b""
                assert proxy.log[0].note == f"nothing moved for {GUARD * 10:g} s"
                writer.close()
                server.close()

    asyncio.run(story())


def test_more_connections_wait_their_turn(tmp_path: Path) -> None:
    async def story() -> None:
        async with between(tmp_path, bounds=Bounds(connections=2)) as (proxy, path):
            idle = [await asyncio.open_unix_connection(str(path)) for _ in range(2)]
            waiting = [asyncio.create_task(ask(path, b"?\r\n\r\n")) for _ in range(20)]
            _, pending = await asyncio.wait(waiting, timeout=0.05)
            assert len(pending) == 20
            for _, writer in idle:
                writer.close()
            assert all(answer.startswith(b"HTTP/1.1 400 ") for answer in await asyncio.gather(*waiting))
            assert len(proxy.log) == 22

    play(story())
