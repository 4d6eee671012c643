"""Programs that run inside a sandbox before, or instead of, the program: three small servers, kept as text.

They are passed to an interpreter with `-c`, so the sandbox needs nothing of this package. Requests come in on
descriptor 3. A session answers on descriptor 4, which may be the same socket.
"""

from __future__ import annotations

WAITING = r"""
def wait():
    import _socket, marshal, os, resource, sys
    os.dup2(3, 99, inheritable=False)
    os.close(3)
    line = _socket.socket(fileno=99)
    data, found, _, _ = line.recvmsg(1, 1024, _socket.MSG_CMSG_CLOEXEC)
    if not data:
        os._exit(0)
    fds = [int.from_bytes(found[0][2][i : i + 4], sys.byteorder) for i in range(0, len(found[0][2]), 4)]
    request = marshal.loads(os.pread(fds[0], os.fstat(fds[0]).st_size, 0))
    for number, fd in enumerate(fds[1:]):
        os.dup2(fd, number)
    os.closerange(len(fds) - 1, 99)
    for kind, limits in request["rlimits"]:
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, tuple(limit if hard < 0 else min(limit, hard) for limit in limits))
    if not line.recv(1):
        os._exit(0)
    line.close()
    os.chdir(request["folder"])
    if request["argv"]:
        try:
            os.execvpe(request["argv"][0], request["argv"], request["env"])
        except OSError as error:
            os.write(2, f"{request['argv'][0]}: {error.strerror}\n".encode())
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    return request["code"]

def run():
    import gc, sys
    gc.collect()
    gc.freeze()
    own = sys.modules["__main__"].__dict__
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__dict__.update({name: own[name] for name in own if name.startswith("__")})
    code = wait()
    try:
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)

run()
"""
"""Waits for one request, and then for the word that its files are there; then it becomes the program.

A program's end is that of any interpreter, but for what was there before it began: that is frozen, since the collector
would look through it twice at the end. Code is given to `exec` as text: `compile` would first make a hundred classes.
"""

PYTHON = r"""
def serve():
    import os, sys, types
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    space = types.ModuleType("__main__")
    sys.modules["__main__"] = space
    asked = b""
    while True:
        while b"\0" not in asked:
            data = os.read(3, 65536)
            if not data:
                os._exit(0)
            asked += data
        code, _, asked = asked.partition(b"\0")
        status = 0
        try:
            exec(compile(code.decode("utf-8", "surrogateescape"), "<input>", "exec"), space.__dict__)
        except SystemExit:
            raise
        except BaseException as error:
            trace = error.__traceback__.tb_next
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            status = 1
            del error, trace
        sys.stdout.flush()
        sys.stderr.flush()
        os.fstat(3)  # Without descriptor 3 the request cannot be read.
        os.write(4, b"%d\0" % status)

serve()
"""
"""An interpreter that lives on: code and NUL in, 0 or 1 and NUL out."""

SHELL = r"""
while IFS= read -r -d '' -u 3 __input; do
    eval "$__input" 3>&- 4>&-
    printf '%d\0' "$?" >&4
done
"""
"""A bash that lives on: a command and NUL in, its exit status and NUL out. What it runs sees neither descriptor."""
