"""A seccomp filter: the system calls that a program in a sandbox may not make.

The kernel runs a small program of classic BPF before each system call. This one is a list of refusals, not of
permissions: a list of what compilers, interpreters and databases need would never be complete, and what protects the
host are namespaces, the missing capabilities and the other user. The filter takes away what those have been broken
through: namespaces inside namespaces, mounts, tracing, keys, BPF, io_uring, unusual socket families.

Refused calls fail with an error that programs know; calls of a foreign architecture kill the process.

    reference: Linux, Documentation/userspace-api/seccomp_filter.rst; numbers from the kernel's system call tables
"""

from __future__ import annotations

import platform
import struct
from typing import NamedTuple

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Load a word of the call; jump when it is equal, at least, has a bit; end with a verdict."""
_NUMBER, _ARCH = 0, 4
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97

_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
"""Put characters into a terminal's input."""
_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6; without network the latter two reach the sandbox itself."""
_DEFAULT_PERSONA, _ASK_PERSONA = 0, 0xFFFFFFFF


class Machine(NamedTuple):
    """Numbers of one architecture.

    Attributes:
        audit: Number of the architecture in the kernel.
        calls: Numbers of the system calls that are allowed in part.
        refused: Numbers of the refused system calls.
    """

    audit: int
    calls: dict[str, int]
    refused: tuple[int, ...]


# open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, process_madvise, mount_setattr, quotactl_fd,
# process_mrelease, set_mempolicy_home_node, io_uring_setup, io_uring_enter, io_uring_register, statmount, listmount
_SAME = (428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 448, 450, 425, 426, 427, 457, 458)

_MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E,
        calls={"clone": 56, "unshare": 272, "socket": 41, "ioctl": 16, "personality": 135, "clone3": 435},
        refused=(
            *(165, 166, 155, 161, 308),  # mount, umount2, pivot_root, chroot, setns
            *(101, 310, 311, 312),  # ptrace, process_vm_readv, process_vm_writev, kcmp
            *(321, 298, 248, 249, 250),  # bpf, perf_event_open, add_key, request_key, keyctl
            *(246, 320, 169, 175, 176, 313),  # kexec_load, kexec_file_load, reboot, init_module, delete_, finit_
            *(167, 168, 163, 179, 103),  # swapon, swapoff, acct, quotactl, syslog
            *(164, 227, 305, 159),  # settimeofday, clock_settime, clock_adjtime, adjtimex
            *(304, 303, 323, 172, 173),  # open_by_handle_at, name_to_handle_at, userfaultfd, iopl, ioperm
            *(237, 238, 256, 279, 300, 301),  # mbind, set_mempolicy, migrate_, move_pages, fanotify_init, _mark
            *(133, 259),  # mknod, mknodat: see `assemble`
        ),
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        calls={"clone": 220, "unshare": 97, "socket": 198, "ioctl": 29, "personality": 92, "clone3": 435},
        refused=(
            *(40, 39, 41, 51, 268),  # mount, umount2, pivot_root, chroot, setns
            *(117, 270, 271, 272),  # ptrace, process_vm_readv, process_vm_writev, kcmp
            *(280, 241, 217, 218, 219),  # bpf, perf_event_open, add_key, request_key, keyctl
            *(104, 294, 142, 105, 106, 273),  # kexec_load, kexec_file_load, reboot, init_module, delete_, finit_
            *(224, 225, 89, 60, 116),  # swapon, swapoff, acct, quotactl, syslog
            *(170, 112, 266, 171),  # settimeofday, clock_settime, clock_adjtime, adjtimex
            *(265, 264, 282),  # open_by_handle_at, name_to_handle_at, userfaultfd
            *(235, 237, 238, 239, 262, 263),  # mbind, set_mempolicy, migrate_, move_pages, fanotify_init, _mark
            33,  # mknodat
        ),
    ),
}
_MAKES_NODES = {"x86_64": (133, 1, 259, 2), "aarch64": (33, 2)}
"""Pairs of call and argument that says what is made: FIFOs, sockets and files are allowed, devices are not."""
_DEVICES = (0x2000, 0x6000)
_TYPE = 0xF000
_X32 = 0x40000000


def machines() -> tuple[str, ...]:
    """Returns the architectures that there is a filter for."""
    return tuple(_MACHINES)


def assemble(machine: str = "") -> bytes:
    """Returns the filter for an architecture, this one when none is named: a list of `struct sock_filter`.

    Raises:
        LookupError: There is none for it.
    """
    name = machine or platform.machine()
    if name not in _MACHINES:
        raise LookupError(f"no seccomp filter for {name}, only for {', '.join(_MACHINES)}")
    chip = _MACHINES[name]
    makers = dict(zip(_MAKES_NODES[name][::2], _MAKES_NODES[name][1::2], strict=True))
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, chip.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),  # calls of x32, an architecture within x86_64, begin here
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
    ]
    for number in (*_SAME, *(number for number in chip.refused if number not in makers)):
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    # glibc and others fall back on clone, whose flags can be looked at; those of clone3 lie behind a pointer.
    code += [(_EQUAL, 0, 1, chip.calls["clone3"]), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    for call in ("clone", "unshare"):
        code += _case(chip.calls[call], 0, [(_ANY_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, _ERRNO | _EPERM)])
    code += _case(chip.calls["ioctl"], 1, _any_of((_TIOCSTI, _TIOCLINUX), _EPERM))
    code += _case(chip.calls["socket"], 0, _none_of(_FAMILIES, _EAFNOSUPPORT))
    code += _case(chip.calls["personality"], 0, _none_of((_DEFAULT_PERSONA, _ASK_PERSONA), _EPERM))
    for number, argument in makers.items():
        code += _case(number, argument, [(0x54, 0, 0, _TYPE), *_any_of(_DEVICES, _EPERM)])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in code)


_Line = tuple[int, int, int, int]
"""Operation, lines to skip when it holds and when not, operand."""


def _case(number: int, argument: int, then: list[_Line]) -> list[_Line]:
    """For one call, look at the lower half of an argument; every other call goes past."""
    body = [(_LOAD, 0, 0, 16 + 8 * argument), *then, (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(body), number), *body]


def _any_of(values: tuple[int, ...], error: int) -> list[_Line]:
    return [line for value in values for line in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | error))]


def _none_of(values: tuple[int, ...], error: int) -> list[_Line]:
    return [*((_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)), (_RETURN, 0, 0, _ERRNO | error)]
