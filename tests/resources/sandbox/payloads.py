"""Programs that sandboxes have to bear, most of them of ill will."""

from __future__ import annotations

EDITS = """
import os
open("notes.txt", "w").write("two\\n")
os.remove("old.txt")
os.mkdir("new")
open("new/run.sh", "w").write("#!/bin/sh\\necho ran\\n")
os.chmod("new/run.sh", 0o755)
os.symlink("notes.txt", "link")
"""

SURROUNDINGS = """
import os, time, socket
print(os.getpid())
print(os.getuid(), os.getgid())
print(socket.gethostname())
print(time.tzname)
print(os.environ["LC_ALL"])
print(os.getcwd())
print(hash("a"), sorted(os.environ.items()))
print(sorted((name, os.stat(name).st_mtime, os.stat(name).st_uid) for name in os.listdir(".")))
"""

PROCESSES = """
import glob, os
print("|".join(open(path, "rb").read().decode() for path in glob.glob("/proc/[0-9]*/environ")).replace("\\n", " "))
print(*sorted(name for name in os.listdir("/proc") if name.isdigit()))
fds = []
for fd in range(256):
    try:
        os.fstat(fd)
        fds.append(fd)
    except OSError:
        pass
print(*fds)
"""

READS = """
import glob, os
found = []
paths = ["/etc/shadow", "/etc/sudoers", "/root", "/home", "/var", "/run", "/sys", "SECRET", "HERE", "/proc/kcore",
         "/proc/1/root/root", "/proc/self/root/root", "/proc/2/root/home", "/proc/self/cwd/../root",
         "/proc/1/cwd/../../../../root", "/proc/sys/kernel/../../1/root/etc/shadow"]
for path in paths:
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            open(path, "rb").read(1)
    except OSError:
        continue
    found.append(path)
for link in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        target = os.open(link + "/..", os.O_RDONLY)
        found.append(link)
    except OSError:
        pass
print(*(found or ["nothing"]))
"""

WRITES = """
import os
done = []
for folder, folders, names in os.walk("/"):
    if folder.startswith(("/proc/", "/usr/", "/workspace/")) and not folder.startswith("/proc/sys/kernel"):
        folders[:] = []
        continue
    if folder == "/proc":
        folders[:] = ["sys"]
    try:
        open(os.path.join(folder, "written"), "w").close()
        done.append(folder)
    except OSError:
        pass
for name in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/etc/passwd",
             "/usr/bin/env", "/dev/null/x", "/proc/1/oom_score_adj", "/proc/1/mem"):
    try:
        open(name, "r+b", buffering=0).write(b"x")
        done.append(name)
    except OSError:
        pass
print(*sorted(done))
"""

CONNECTS = """
import errno, socket
def say(what, family, address, kind=socket.SOCK_STREAM):
    try:
        one = socket.socket(family, kind)
        one.settimeout(5)
        one.connect(address)
        print(what, "reached")
    except OSError as error:
        names = {errno.ECONNREFUSED: "refused", errno.ENETUNREACH: "unreachable"}
        print(what, names.get(error.errno, error.errno))
say("tcp", socket.AF_INET, ("127.0.0.1", PORT))
say("far", socket.AF_INET, ("192.0.2.1", 80))
say("unix", socket.AF_UNIX, NAME)
say("packet", socket.AF_PACKET, None, socket.SOCK_RAW)
say("netlink", socket.AF_NETLINK, (0, 0), socket.SOCK_RAW)
"""

FETCHES = """
import os, socket, urllib.error, urllib.request
os.environ["no_proxy"] = ""
for port in PORTS:
    try:
        print(urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code)
try:
    socket.create_connection(("127.0.0.1", PORTS[0]), timeout=20)
except ConnectionRefusedError:
    print("directly refused")
"""

SYSCALLS = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
def say(name, result):
    number = ctypes.get_errno()
    print(name, "allowed" if result >= 0 else errno.errorcode.get(number, number))
def call(name, *numbers_and_arguments):
    (numbers, *arguments) = numbers_and_arguments
    ctypes.set_errno(0)
    number = numbers[0 if x86 else 1]
    say(name, libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]))
NEWUSER, NEWNS = 0x10000000, 0x00020000
ctypes.set_errno(0)
say("mount", libc.mount(b"none", b"/tmp", b"tmpfs", 0, b""))
ctypes.set_errno(0)
say("umount", libc.umount2(b"/tmp", 2))
for name, flags in (("unshare user", NEWUSER), ("unshare mount", NEWNS), ("unshare net", 0x40000000)):
    ctypes.set_errno(0)
    say(name, libc.unshare(flags))
call("clone user", (56, 220), NEWUSER | 17, 0, 0, 0, 0)
call("clone3", (435, 435), 0, 0)
call("ptrace traceme", (101, 117), 0, 0, 0, 0)
call("process_vm_readv", (310, 270), 1, 0, 0, 0, 0, 0)
call("bpf", (321, 280), 0, 0, 0)
call("perf_event_open", (298, 241), 0, 0, 0, 0, 0)
call("io_uring_setup", (425, 425), 1, 0)
call("keyctl", (250, 219), 0, 0, 0, 0, 0)
call("add_key", (248, 217), b"user", b"a", b"b", 1, -3)
call("kexec_load", (246, 104), 0, 0, 0, 0)
call("setns", (308, 268), 0, 0)
call("chroot", (161, 51), b"/tmp")
call("pivot_root", (155, 41), b"/", b"/")
call("personality", (135, 92), 0x0040000)
call("mknod device", (259, 33), -100, b"/tmp/d", 0o020666, 0x103)
call("tiocsti", (16, 29), 0, 0x5412, b"x")
call("open_by_handle_at", (304, 265), 0, 0, 0)
call("userfaultfd", (323, 282), 0)
call("sethostname", (170, 161), b"x", 1)
call("settimeofday", (164, 170), ctypes.create_string_buffer(16), 0)
call("setuid", (105, 146), 0)
call("setgroups", (116, 159), 0, 0)
call("chown", (92, -1) if x86 else (0, 54), *((b"/tmp", 0, 0) if x86 else (-100, b"/tmp", 0, 0, 0)))
"""

TRAPS = """
import signal, time
for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass
print("trapped", flush=True)
while True:
    time.sleep(1)
"""

FILLS = """
what, block = "WHAT", b"x" * 2**20
if what == "anonymous":
    held = []
    while True:
        held.append(bytearray(block))
folder = {"tmp": "/tmp", "shm": "/dev/shm", "workspace": "."}[what]
with open(folder + "/filler", "wb") as file:
    while True:
        file.write(block)
"""

FORKS = """
import os, signal, time
count, pids = 1, []
try:
    while True:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        pids.append(pid)
        count += 1
except BlockingIOError:
    print(count)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
"""

BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""

DISK = """
for folder in (".", "/tmp", "/dev/shm"):
    try:
        with open(folder + "/filler", "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 65536)
    except OSError as error:
        print(error.strerror)
"""

INODES = """
for folder in (".", "/tmp", "/dev/shm"):
    try:
        for n in range(10000):
            open(f"{folder}/{n}", "w").close()
    except OSError as error:
        print(error.strerror)
"""

OPENS = """
import os
held = []
try:
    while True:
        held.append(os.open("/", os.O_RDONLY))
except OSError as error:
    last = held[-1] + 1
    os.close(held.pop())
    print(error.strerror, last)
"""

DAEMON = """
import os, signal, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.write(write, b".")
        time.sleep(0.3)
        open("late", "w").close()
        while True:
            time.sleep(1)
    os._exit(0)
os.read(read, 1)
print("gone")
"""
