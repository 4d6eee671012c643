"""One host, one form: what a list may hold, what is public, and that no text is read in two ways."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quintain.errors import UsageError
from quintain.resources.sandbox import hosts
from quintain.resources.sandbox.hosts import Allowed, allow


@pytest.mark.parametrize(
    ("entry", "host", "port"),
    [
        ("PyPI.org:443", "pypi.org", 443),
        ("pypi.org.:1", "pypi.org", 1),
        ("_dmarc.x-1.test:65535", "_dmarc.x-1.test", 65535),
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("[0:0::1]:80", "::1", 80),
        ("[::ffff:10.0.0.1]:80", "10.0.0.1", 80),
    ],
)
def test_an_entry_has_one_form(entry: str, host: str, port: int) -> None:
    assert Allowed.parse(entry) == Allowed(host, port)


@pytest.mark.parametrize(
    "entry",
    [
        "pypi.org",
        "pypi.org:",
        "pypi.org:0",
        "pypi.org:65536",
        "pypi.org:0443",
        "pypi.org:+1",
        ":443",
        "*:443",
        "*.org:443",
        "*.1.2.3.4:80",
        "*.[::1]:80",
        "a.*.org:80",
        "http://pypi.org:443",
        "pypi.org:443/x",
        "me@pypi.org:443",
        "pypi..org:80",
        "-a.org:80",
        "a-.org:80",
        "bücher.test:80",
        "\u212a.org:80",
        "2130706433:80",
        "0177.0.0.1:80",
        "0x7f000001:80",
        "127.1:80",
        "1.2.3.4.5:80",
        "256.0.0.1:80",
        "::1:80",
        "[::1",
        "[::1%eth0]:80",
        "[pypi.org]:80",
        "[1.2.3.4]:80",
        "0.0.0.0:80",
        "[::]:80",
        "224.0.0.1:80",
    ],
)
def test_bad_entries_are_named_in_the_error(entry: str) -> None:
    with pytest.raises(UsageError) as caught:
        allow((entry,))
    assert repr(entry) in str(caught.value)


def test_a_text_is_no_list_and_a_host_has_one_form() -> None:
    with pytest.raises(UsageError, match="tuple"):
        allow("pypi.org:443")
    with pytest.raises(ValueError, match=r"'PyPI\.org' is written 'pypi\.org'"):
        Allowed("PyPI.org", 443)


def test_a_star_is_for_names_below() -> None:
    (star,) = allow(("*.example.org:443",))
    assert [star.matches(host, 443) for host in ("a.example.org", "a.b.example.org")] == [True, True]
    assert not any(star.matches(host, 443) for host in ("example.org", "badexample.org", "a.example.org.test"))
    assert not star.matches("a.example.org", 80)


LABELS = st.from_regex(r"[a-z0-9_]([a-z0-9_-]{0,8}[a-z0-9_])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join).filter(lambda name: not name.split(".")[-1].isdigit())


@given(NAMES, st.integers(1, 65535), st.booleans())
def test_an_entry_is_what_it_shows(name: str, port: int, is_wild: bool) -> None:
    if name.rpartition(".")[2].startswith("0x") or (is_wild and "." not in name):
        return
    one = Allowed(name, port, is_wild)
    assert Allowed.parse(str(one).upper()) == one
    assert one.matches(f"www.{name}" if is_wild else name, port)


@given(st.one_of(st.text(), st.from_regex(r"(\*\.)?[0-9a-fx.:\[\]@%*-]{1,20}:[0-9]{1,6}", fullmatch=True)))
@example("1.2.3.4:80\n")
def test_any_text_is_an_entry_in_one_form_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        one = Allowed.parse(text)
        assert Allowed.parse(str(one)) == one
        assert 0 < one.port < 65536
        if hosts.address(one.host) is None:  # No resolver takes it for an address.
            with pytest.raises(OSError, match="illegal"):
                socket.inet_aton(one.host)


PRIVATE = [
    "127.0.0.1",
    "127.9.9.9",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "192.0.0.192",
    "0.0.0.0",
    "224.0.0.1",
    "168.63.129.16",
    "192.88.99.1",
    "198.18.0.1",
    "203.0.113.7",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
]


def test_public_addresses_are_recognised() -> None:
    found = {text: hosts.address(text) for text in (*PRIVATE, "8.8.8.8", "2606:4700::1", "64:ff9b::808:808")}
    assert [text for text, one in found.items() if one and hosts.is_public(one)] == list(found)[-3:]


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_private_addresses_of_python_are_not_public(one: hosts.Address) -> None:
    wrapped = ipaddress.IPv6Address((0x64FF9B << 96) + int(one)) if one.version == 4 else one
    assert hosts.is_public(wrapped) == hosts.is_public(one)
    assert not (hosts.is_public(one) and (one.is_private or one.is_multicast or one.is_loopback))


def test_an_address_may_stand_for_a_host() -> None:
    one = Allowed.parse("Desk.example:80=127.0.0.1:8080")
    assert (one.host, one.port, one.place) == ("desk.example", 80, ("127.0.0.1", 8080))
    assert one.matches("desk.example", 80)
    assert (str(one), one.shown) == ("desk.example:80=127.0.0.1:8080", "desk.example:80")
    for wrong in ("desk.example:80=other.example:80", "desk.example:80=", "desk.example:80=127.0.0.1"):
        with pytest.raises(UsageError, match="perhaps the address that stands for it"):
            Allowed.parse(wrong)
