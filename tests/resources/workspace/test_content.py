"""Chunks, holes, and where whole megabytes lie."""

from __future__ import annotations

import gc
import os
import resource as limits
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.errors import ToolError
from quintain.resources.workspace import Quota, Workspace
from quintain.resources.workspace.content import CHUNK, Content, Spill, chunk, content

pieces = st.lists(st.tuples(st.sampled_from([b"\0", b"a", b"b"]), st.integers(0, 2 * CHUNK + 3)), max_size=3)


def joined(parts: list[tuple[bytes, int]]) -> bytes:
    return b"".join(byte * count for byte, count in parts)


@settings(max_examples=40)
@given(pieces, pieces, st.integers(0, 5 * CHUNK), st.integers(0, 3 * CHUNK))
def test_a_content_is_its_bytes(
    first: list[tuple[bytes, int]], more: list[tuple[bytes, int]], offset: int, size: int
) -> None:
    data, extra = joined(first), joined(more)
    held = content(data)
    assert held.read(0, len(data) + 1) == data
    assert held.read(offset, size) == data[offset : offset + size]
    longer = held.extended(extra)
    assert longer.read(0, longer.size) == data + extra
    assert longer.digest == content(data + extra).digest
    assert (longer.digest == held.digest) == (not extra)


def test_zeros_are_not_kept() -> None:
    assert content(bytes(3 * CHUNK)).stored == 0
    assert content(bytes(CHUNK) + b"x").stored == 1
    assert content(bytes(5)).digest != content(bytes(6)).digest


def test_a_sparse_terabyte_costs_what_is_in_it() -> None:
    one = chunk(b"x" * CHUNK)
    assert one is not None
    held = Content(2**40, [(700_000, one)])
    assert held.stored == CHUNK
    assert held.read(700_000 * CHUNK - 2, 4) == b"\0\0xx"
    assert held.read(2**40 - 2, 4) == b"\0\0"
    assert held.extended(b"end").read(2**40 - 1, 10) == b"\0end"


def test_equal_megabytes_are_kept_once() -> None:
    one, two = Workspace(), Workspace()
    one.write("a", b"q" * CHUNK)
    two.write("b", b"q" * CHUNK)
    first, second = (each.image.get(path) for each, path in ((one, b"a"), (two, b"b")))
    assert first
    assert second
    assert first.content.chunks[0][1] is second.content.chunks[0][1]


def test_megabytes_do_not_lie_in_memory() -> None:
    workspace = Workspace()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(16):
        workspace.write(f"file {number}", os.urandom(CHUNK))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used < CHUNK
    assert len(workspace.read("file 7")) == CHUNK


def test_a_slot_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    spill = Spill()
    first = spill.put(b"a" * CHUNK)
    second = spill.put(b"b" * CHUNK)
    spill.drop(*first[1:])
    assert spill.put(b"c" * CHUNK)[1] == first[1]
    assert os.pread(second[0], CHUNK, second[1]) == b"b" * CHUNK
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # newer versions warn where pytest has threads
def test_a_child_goes_on_with_what_its_parent_had() -> None:
    workspace = Workspace()
    data = [bytes([number]) * CHUNK for number in range(1, 6)]
    for number, one in enumerate(data[:3]):
        workspace.write(f"{number}", one)
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.read(out, 1)  # the parent has dropped everything and written anew
        workspace.write("3", data[3])
        is_whole = all(workspace.read(f"{number}") == one for number, one in enumerate(data[:4]))
        os._exit(0 if is_whole else 1)
    for number in range(3):
        workspace.delete(f"{number}")
    gc.collect()
    for number in range(3):
        workspace.write(f"{number}", data[4][: CHUNK - 1] + bytes([number]))
    os.write(into, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert workspace.read("1") == data[4][: CHUNK - 1] + b"\1"


def test_a_full_disk_changes_nothing() -> None:
    workspace = Workspace({"a": "a"})
    digest = workspace.digest()
    old = limits.getrlimit(limits.RLIMIT_FSIZE)
    limits.setrlimit(limits.RLIMIT_FSIZE, (1000, old[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            workspace.write("b", os.urandom(CHUNK))
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, old)
    assert workspace.digest() == digest
    data = os.urandom(CHUNK)
    workspace.write("b", data)
    assert workspace.read("b") == data


def test_large_files_are_read_in_parts() -> None:
    workspace = Workspace({"a": "abc"}, quota=Quota(bytes=10 * CHUNK))
    entry = workspace.image.get(b"a")
    assert entry
    huge = type(entry)("file", 0o644, 0, content=Content(2**40, ()))
    workspace.commit(workspace.image, {b"huge": huge})
    with pytest.raises(ToolError, match="offset and size"):
        workspace.read("huge")
    assert workspace.read("huge", offset=2**40 - 3, size=9) == bytes(3)
    assert workspace.read("a", offset=1) == b"bc"
    assert workspace.read("a", offset=5, size=5) == b""
    with pytest.raises(ToolError, match="0 or more"):
        workspace.read("a", offset=-1)
    with pytest.raises(ToolError, match="an archive would have"):
        workspace.to_tar()
    assert Workspace.load(workspace.dump()).stat("huge").size == 2**40
