"""Content of a git repository at a commit, and after a patch. The repository itself is not changed.

Git works in an empty repository of its own that borrows the objects. So no hook, attribute file or index of the given
repository takes part, and new objects are thrown away.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec

from quintain.errors import UsageError

_Git = Callable[..., bytes]


class PatchedFile(msgspec.Struct, frozen=True):
    """A file or symlink that a patch makes or changes.

    Attributes:
        data: Its content; the target of a symlink.
        kind: "file", "executable" or "symlink".
    """

    data: bytes
    kind: str = "file"


def check(folder: Path, commit: str) -> None:
    """Checks that a repository has a commit.

    Raises:
        UsageError: The folder is not a git repository, or lacks the commit.
    """
    if not folder.is_dir():
        raise UsageError(f"the repository {folder} does not exist; clone it, or name its folder with the option repos")
    try:
        _run("-C", str(folder), "cat-file", "-e", f"{commit}^{{commit}}", ceiling=folder)
    except UsageError as error:
        raise UsageError(f"the repository {folder} lacks the commit {commit}; fetch it ({error})") from error


def archive(folder: Path, commit: str) -> bytes:
    """Returns a tar archive of the files at a commit."""
    with _borrowed(folder) as git:
        return git("archive", commit)


def patched(folder: Path, commit: str, patch: str) -> dict[str, PatchedFile | None]:
    """Returns the files that a patch changes, as they are after it; None for a deleted one.

    Raises:
        UsageError: The patch does not apply to the commit.
    """
    if not patch.strip():
        return {}
    with _borrowed(folder) as git:
        git("read-tree", commit)
        git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch.encode())
        tree = git("write-tree").decode().strip()
        found = git("diff-tree", "-r", "-z", "--no-renames", "--name-status", commit, tree)
        words = found.decode("utf-8", "surrogateescape").split("\0")
        changes = dict(zip(words[1::2], words[::2], strict=False))
        kept = [path for path, status in changes.items() if status != "D"]
        made = dict(_files(git("archive", tree, "--", *kept))) if kept else {}
    return {path: made.get(path) for path in changes}


def _files(tar: bytes) -> Iterator[tuple[str, PatchedFile]]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as members:
        for member in members:
            if member.issym():
                yield member.name, PatchedFile(member.linkname.encode("utf-8", "surrogateescape"), "symlink")
            elif stream := members.extractfile(member):
                yield member.name, PatchedFile(stream.read(), "executable" if member.mode & 0o100 else "file")


@contextlib.contextmanager
def _borrowed(folder: Path) -> Generator[_Git]:
    """Yields a function that runs git in an empty repository with the objects of another."""
    found = _run("-C", str(folder), "rev-parse", "--git-path", "objects", ceiling=folder)
    objects = (folder / os.fsdecode(found).rstrip("\n")).resolve()
    with tempfile.TemporaryDirectory() as own:
        _run("init", "--quiet", "--bare", "--template=", own)
        (Path(own) / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
        (Path(own) / "info").mkdir()
        (Path(own) / "info" / "attributes").write_text("* -export-ignore -export-subst\n")  # The archive is whole.

        def git(*words: str, stdin: bytes = b"") -> bytes:
            first = ("--git-dir", own, "--literal-pathspecs", "-c", "core.autocrlf=false", "-c", "tar.umask=022")
            return _run(*first, *words, stdin=stdin)

        yield git


def _run(*words: str, stdin: bytes = b"", ceiling: Path | None = None) -> bytes:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"}
    env |= {"GIT_CEILING_DIRECTORIES": str(ceiling.resolve().parent)} if ceiling else {}
    try:
        done = subprocess.run(  # The user's own git is wanted.
            ["git", *words],  # noqa: S607
            input=stdin,
            capture_output=True,
            env=env,
            check=False,
        )
    except FileNotFoundError as error:
        raise UsageError("the program git is missing; install it to play rows with repositories") from error
    if done.returncode:
        raise UsageError(f"git: {done.stderr.decode(errors='replace').strip()[:500]}")
    return done.stdout
