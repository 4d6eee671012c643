"""Hosts that a proxy may reach, and the parsing of requests.

A host has one form here: a name in lower case without a dot at its end, or an address as Python writes it. Ambiguous
forms are refused and not repaired: numbers that some resolvers take for addresses (2130706433, 0177.0.0.1, 0x7f.1),
credentials before a host, escapes, letters beyond ASCII, a second length.

    reference: RFC 9110 and 9112, HTTP and HTTP/1.1; the "ends in a number checker" of WHATWG URL; the registries of
    special-purpose addresses of IANA
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec

from quintain.errors import UsageError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([1-9][0-9]{0,4}))?")
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_LINE = re.compile(rf"({_WORD}) ([\x21-\x7e]+) HTTP/1\.[01]")
_FIELD = re.compile(rf"({_WORD}):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
_URL = re.compile(r"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_LENGTH = re.compile(r"[0-9]{1,18}")

_HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "upgrade"}
"""Fields that are meant for the proxy."""
_FORM = (
    "a network entry is a host and a port, such as 'pypi.org:443', '*.example.org:443' or '127.0.0.1:8080', "
    "and perhaps the address that stands for it, such as 'desk.example:80=127.0.0.1:8080'"
)

_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        # What `is_global` of some supported Python lets pass: IETF assignments (one cloud has its metadata there), the
        # relays of 6to4, the host below virtual machines of Azure; 6to4 and Teredo, which wrap addresses of version 4.
        ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2002::/16", "2001::/32"),
    )
)
_UNICAST, _NAT64 = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("64:ff9b::/96")


class Allowed(msgspec.Struct, frozen=True):
    """Entry of the list of allowed hosts.

    Attributes:
        host: A name in lower case, or an address as Python writes it, IPv6 without brackets.
        port: From 1 to 65535.
        is_wild: True for all names that end in `.host`, at any depth, and not the host itself.
        place: Address and port that are connected to instead of the host's own; None for those.

    Raises:
        ValueError: The host is in another form, or the port out of range.
    """

    host: str
    port: int
    is_wild: bool = False
    place: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        if _entry(self.shown) != (self.host, self.port, self.is_wild):
            raise ValueError(f"the host {self.host!r} is written {_entry(self.shown)[0]!r}")

    @classmethod
    def parse(cls, entry: str) -> Self:
        """Reads `host:port`, `*.host:port`, `1.2.3.4:port` or `[::1]:port`, each perhaps with `=address:port` after it.

        Raises:
            UsageError: It is none of these; the message names the entry and says why.
        """
        name, is_placed, place = entry.partition("=")
        try:
            return cls(*_entry(name), place=_place(place) if is_placed else None)
        except ValueError as error:
            raise UsageError(f"{entry!r}: {error}; {_FORM}") from error

    def matches(self, host: str, port: int) -> bool:
        """True if a host, in the form of `host`, may be reached at a port."""
        return port == self.port and (host.endswith(f".{self.host}") if self.is_wild else host == self.host)

    @property
    def shown(self) -> str:
        """The entry as a program in the sandbox may read it."""
        return f"{'*.' if self.is_wild else ''}{shown(self.host, self.port)}"

    def __str__(self) -> str:
        return f"{self.shown}={shown(*self.place)}" if self.place else self.shown


def allow(entries: Sequence[str]) -> tuple[Allowed, ...]:
    """Returns a list of what may be reached.

    Raises:
        UsageError: An entry cannot be read, or this is one text instead of a list.
    """
    if isinstance(entries, str):
        raise UsageError(f"network is a tuple of entries, got the text {entries!r}")
    return tuple(map(Allowed.parse, entries))


def shown(host: str, port: int) -> str:
    """Both as they are written."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def address(host: str) -> Address | None:
    """Returns the address in a host, None for a name. A version 4 address within version 6 becomes version 4."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def is_public(one: Address) -> bool:
    """True if an address is on the public internet, and of one machine."""
    if isinstance(one, ipaddress.IPv6Address):
        if one in _NAT64:
            return is_public(ipaddress.IPv4Address(int(one) % 2**32))
        if one not in _UNICAST:
            return False
    return one.is_global and not one.is_multicast and not any(one in network for network in _NOT_PUBLIC)


async def resolve(host: str, port: int) -> list[str]:
    """Returns the addresses of a name, as this machine resolves it.

    Raises:
        OSError: It has none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def connect(addresses: Sequence[Address], port: int) -> socket.socket:
    """Connects to the first address that answers, of one or more.

    Raises:
        OSError: None does; of the last.
    """
    *others, last = addresses
    for one in others:
        try:
            return await _connect(one, port)
        except OSError:
            continue
    return await _connect(last, port)


async def _connect(one: Address, port: int) -> socket.socket:
    family = socket.AF_INET6 if isinstance(one, ipaddress.IPv6Address) else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(made, (str(one), port))
    except BaseException:
        made.close()
        raise
    return made


def _entry(text: str) -> tuple[str, int, bool]:
    is_wild = text.startswith("*.")
    host, port = _authority(text.removeprefix("*."), None)
    found = address(host)
    if is_wild and (found or "." not in host):
        raise ValueError(f"'*.' stands before a name of two parts or more, not before {host!r}")
    if found and (found.is_unspecified or found.is_multicast):
        raise ValueError(f"{host} is the address of no host")
    return host, port, is_wild


def _place(text: str) -> tuple[str, int]:
    host, port, _ = _entry(text)
    if address(host) is None:
        raise ValueError(f"{host!r} is no address, and only an address can stand for a host")
    return host, port


def _authority(text: str, default: int | None) -> tuple[str, int]:
    found = _AUTHORITY.fullmatch(text)
    port = int(found[2]) if found and found[2] else default
    if found is None or port is None or port > 65535:
        raise ValueError("a port from 1 to 65535 is missing")
    return _host(found[1]), port


def _host(text: str) -> str:
    if not text.isascii():
        raise ValueError("the host is not ASCII; other scripts are written as xn--...")
    name = text.lower().removesuffix(".")
    is_six = text.startswith("[")
    if is_six or _NUMBER.fullmatch(name.rpartition(".")[2]):
        found = address(text[1:-1] if is_six else name)
        if found is None or "%" in text or is_six != (":" in text):
            raise ValueError(f"{text!r} is no address")
        return str(found)
    if len(name) > 253 or not all(map(_LABEL.fullmatch, name.split("."))):
        raise ValueError(f"{text!r} is no name of a host")
    return name


class ProxyRequest(NamedTuple):
    """ProxyRequest of a program to a proxy.

    Attributes:
        host: In the one form.
        port: From 1 to 65535.
        head: First bytes for the host; empty for a tunnel.
        body: Number of bytes that follow; None for a tunnel, which lasts until both sides have ended.
    """

    host: str
    port: int
    head: bytes = b""
    body: int | None = None


def read(head: bytes) -> ProxyRequest:
    """Reads a request up to the empty line, which is not part of `head`.

    Raises:
        ValueError: It is none, or one that two readers may understand differently.
    """
    first, *rest = head.decode("latin-1").split("\r\n")
    line, fields = _LINE.fullmatch(first), [_FIELD.fullmatch(one) for one in rest]
    if line is None:
        raise ValueError("the first line is no request of HTTP/1.1")
    pairs = [(found[1], found[2]) for found in fields if found]
    if len(pairs) < len(fields):
        raise ValueError("there is a line that is no field of a header")
    if line[1] == "CONNECT":
        return ProxyRequest(*_authority(line[2], None))
    url = _URL.fullmatch(line[2])
    if url is None:
        raise ValueError("a proxy takes CONNECT host:port, or a method and http://host/path")
    host, port = _authority(url[1], 80)
    lengths = {value for name, value in pairs if name.lower() == "content-length"}
    if any(name.lower() == "transfer-encoding" for name, _ in pairs):
        raise ValueError("a body needs a Content-Length and no Transfer-Encoding")
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise ValueError("Content-Length is no number, or several")
    # Whom `Connection` names is for the proxy too; what frames the request is written anew, so it can't be named away.
    named = ",".join(value for name, value in pairs if name.lower() == "connection").lower()
    dropped = {*_HOP, *(one.strip() for one in named.split(",")), "host", "content-length", "trailer"}
    path = url[2] if (url[2] or "").startswith("/") else f"/{url[2] or ''}"
    lines = [f"{line[1]} {path} HTTP/1.1", f"Host: {shown(host, port) if port != 80 else shown(host, 80)[:-3]}"]
    lines += [f"Content-Length: {length}" for length in lengths]
    lines += [f"{name}: {value}" for name, value in pairs if name.lower() not in dropped]
    forwarded = "\r\n".join([*lines, "Connection: close", "", ""])
    return ProxyRequest(host, port, forwarded.encode("latin-1"), int(next(iter(lengths), "0")))
