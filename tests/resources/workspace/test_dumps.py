"""Dumps that were torn or changed are refused, and nothing else happens."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.resources.workspace import ImageError, Workspace


def workspace() -> Workspace:
    one = Workspace({"a": "1", "d/b": "2", "d/c": "3"})
    one.write("a", "changed")
    one.write("n/m", b"\0\1")
    one.link("l", "d/b")
    one.delete("d/c")
    return one


@functools.cache
def dump() -> bytes:
    return workspace().dump()


@given(st.floats(0, 1, exclude_max=True))
def test_torn_dumps_are_refused(share: float) -> None:
    with pytest.raises(ImageError):
        Workspace.load(dump()[: int(share * len(dump()))])


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_changed_bytes_are_refused_or_another_workspace(share: float, flip: int) -> None:
    data = bytearray(dump())
    data[int(share * len(data))] ^= flip
    try:
        one = Workspace.load(bytes(data))
    except ImageError:
        return
    assert Workspace.load(one.dump()).digest() == one.digest()
    assert [stat for stat in one.walk() if stat.kind == "file" and len(one.read(stat.path)) != stat.size] == []
    one.write("x", "x")


ROW = [b"x", "file", 0o644, 0, b"", 0, []]


@pytest.mark.parametrize(
    ("row", "gone"),
    [
        ([b"../x", *ROW[1:]], []),
        ([b"", *ROW[1:]], []),
        ([b"/x", *ROW[1:]], []),
        ([b"no/x", *ROW[1:]], []),
        ([b"a/x", *ROW[1:]], []),
        ([b"x", "device", *ROW[2:]], []),
        ([b"x", "file", 0o4755, *ROW[3:]], []),
        ([b"x", "folder", 0o755, 0, b"", 5, []], []),
        ([b"x", "symlink", 0o777, 0, b"", 0, []], []),
        ([b"x", "file", 0o644, 0, b"target", 0, []], []),
        ([b"x", "file", 0o644, 0, b"", 5, [[0, b"no chunk"]]], []),
        ([b"x", "file", 0o644, 0, b"", 9, [[0, "first"]]], []),
        ([b"d", *ROW[1:]], []),
        (ROW, [b"d"]),
    ],
)
def test_entries_that_cannot_be(row: list[Any], gone: list[bytes]) -> None:
    parts = codec.loads(dump(), list[Any])
    if row[6] == [[0, "first"]]:
        digest = next(digest for one in parts[4] for _, digest in one[6])
        row = [*row[:6], [[0, digest]]]
    parts[4], parts[5] = [*parts[4], row], [*parts[5], *gone]
    with pytest.raises(ImageError, match="no dump of a workspace"):
        Workspace.load(codec.dumps(parts))


def test_another_format() -> None:
    with pytest.raises(ImageError, match="quintain workspace 9"):
        Workspace.load(codec.dumps(["quintain workspace 9", *codec.loads(dump(), list[Any])[1:]]))


def test_equal_workspaces_have_equal_dumps() -> None:
    one = workspace()
    two = Workspace({"a": "1", "d/b": "2", "d/c": "3"})
    two.write("n/m", b"\0\1")
    two.write("a", "something")
    two.write("temporary", "x" * 1000)
    two.delete("temporary")
    two.link("l", "d/b")
    two.write("a", "changed")
    two.delete("d/c")
    assert one.dump() == two.dump()
    assert one.digest() == two.digest()
