"""The filter, run by a machine of our own: what each architecture refuses, and with which words."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.resources.sandbox import seccomp

KILL, ALLOW, EPERM, ENOSYS, EAFNOSUPPORT = 0x80000000, 0x7FFF0000, 0x50001, 0x50026, 0x50061
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def judge(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Run the filter as the kernel does, over a `struct seccomp_data`."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, ARCHITECTURES[machine] if arch is None else arch, 0, *words)
    code = [*struct.iter_unpack("<HBBI", seccomp.assemble(machine))]
    at = accumulator = 0
    while True:
        operation, yes, no, operand = code[at]
        at += 1
        match operation:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, operand)[0]
            case 0x54:
                accumulator &= operand
            case 0x15:
                at += yes if accumulator == operand else no
            case 0x35:
                at += yes if accumulator >= operand else no
            case 0x45:
                at += yes if accumulator & operand else no
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"no such operation: {operation:#x}")


CALLS = {
    # name: numbers on x86_64 and aarch64, arguments, verdict
    "read": ((0, 63), (), ALLOW),
    "execve": ((59, 221), (), ALLOW),
    "mount": ((165, 40), (), EPERM),
    "ptrace": ((101, 117), (), EPERM),
    "bpf": ((321, 280), (), EPERM),
    "keyctl": ((250, 219), (), EPERM),
    "io_uring_setup": ((425, 425), (), EPERM),
    "clone3": ((435, 435), (), ENOSYS),
    "fork by clone": ((56, 220), (17,), ALLOW),
    "thread by clone": ((56, 220), (0x3D0F00,), ALLOW),
    "clone into a user namespace": ((56, 220), (0x10000011,), EPERM),
    "clone into a time namespace": ((56, 220), (0x80 | 17,), EPERM),
    "unshare files": ((272, 97), (0x400,), ALLOW),
    "unshare a mount namespace": ((272, 97), (0x20000,), EPERM),
    "unix socket": ((41, 198), (1,), ALLOW),
    "internet socket": ((41, 198), (10,), ALLOW),
    "netlink socket": ((41, 198), (16,), EAFNOSUPPORT),
    "vsock": ((41, 198), (40,), EAFNOSUPPORT),
    "TCGETS": ((16, 29), (0, 0x5401), ALLOW),
    "TIOCSTI": ((16, 29), (0, 0x5412), EPERM),
    "TIOCSTI, upper half set": ((16, 29), (0, 0x1_0000_5412), EPERM),
    "which personality": ((135, 92), (0xFFFFFFFF,), ALLOW),
    "no randomization": ((135, 92), (0x40000,), EPERM),
    "make a FIFO": ((259, 33), (0, 0, 0o010644), ALLOW),
    "make a file": ((259, 33), (0, 0, 0o100644), ALLOW),
    "make a character device": ((259, 33), (0, 0, 0o020644), EPERM),
    "make a block device": ((259, 33), (0, 0, 0o060644), EPERM),
}


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("name", CALLS)
def test_each_call_has_its_verdict(machine: str, name: str) -> None:
    numbers, arguments, verdict = CALLS[name]
    assert judge(machine, numbers[list(ARCHITECTURES).index(machine)], *arguments) == verdict


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_foreign_architecture_is_killed(machine: str) -> None:
    assert judge(machine, 0, arch=0x40000003) == KILL


def test_calls_of_x32_do_not_exist() -> None:
    assert judge("x86_64", 0x40000000 + 101) == ENOSYS


@given(st.sampled_from([*ARCHITECTURES]), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_call_has_a_verdict(machine: str, number: int, arguments: list[int]) -> None:
    assert judge(machine, number, *arguments) in {ALLOW, EPERM, ENOSYS, EAFNOSUPPORT}


def test_filters_exist_for_these_architectures_only() -> None:
    assert seccomp.machines() == tuple(ARCHITECTURES)
    with pytest.raises(LookupError, match="riscv64"):
        seccomp.assemble("riscv64")
