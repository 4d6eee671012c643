"""Queue between two processes of one machine: the trainer asks, and the process that plays answers with a batch.

The groups wait in the process that plays. A batch crosses, as MessagePack, only when the trainer asks for it. So the
pipeline's bound is that of the queue, a trainer that stops reading stops play, and no token ages on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self

import msgspec

from quintain import codec
from quintain.errors import QuintainError

from .pipeline import AsyncBatches, Batch


class ProducerError(QuintainError):
    """The other side of the queue failed or died; the message has its error."""


class _Question(msgspec.Struct):
    """Request of the trainer: the next batch, or that the endpoint has the weights of a version."""

    version: int | None = None


class Answer(msgspec.Struct):
    """The next batch, or None after the last one, and an error."""

    batch: Batch | None = None
    error: str = ""

    def opened(self) -> Batch:
        """Returns the batch.

        Raises:
            ProducerError: The answer is an error.
            StopIteration: There are no more batches.
        """
        if self.error:
            raise ProducerError(self.error)
        if self.batch is None:
            raise StopIteration
        return self.batch


class Producer:
    """Process that plays, and iterator of its batches. It belongs to one thread of the trainer.

    Args:
        make: Function of a module, so that the new process finds it; it returns the pipeline.
    """

    def __init__(self, make: Callable[[], AsyncBatches[Any]]) -> None:
        context = multiprocessing.get_context("spawn")  # A fork would copy the trainer's threads and its accelerator.
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(make, theirs), daemon=True)
        self._process.start()
        theirs.close()  # So that the process's death ends the stream.

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        """Returns the next batch, when it is complete.

        Raises:
            ProducerError: The process failed or died.
        """
        self._send(_Question())
        try:
            answer = codec.loads(self._connection.recv_bytes(), Answer)
        except (EOFError, ConnectionError):
            self._process.join()
            raise ProducerError(
                f"the process that plays ended with exit code {self._process.exitcode} before it answered, and groups "
                "in play are lost; start it again with the trainer's version (version=)"
            ) from None
        return answer.opened()

    def advance(self, version: int) -> None:
        """Notes that the endpoint now has the weights of this version; an error comes with the next batch."""
        self._send(_Question(version))

    def close(self) -> None:
        """Ends the process and what it plays."""
        self._connection.close()
        self._process.join(timeout=10)
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, question: _Question) -> None:
        with contextlib.suppress(ConnectionError):  # What ended it stands in the stream, for the next read.
            self._connection.send_bytes(codec.dumps(question))


def _run(make: Callable[[], AsyncBatches[Any]], connection: Connection) -> None:
    try:
        asyncio.run(_serve(make(), connection))
    except (EOFError, ConnectionError):
        return  # The trainer closed its end.
    except Exception as error:  # noqa: BLE001  # handed to the trainer, who raises it
        answer = Answer(error=f"the process that plays failed: {type(error).__name__}: {error}")
        connection.send_bytes(codec.dumps(answer))


async def _serve(pipe: AsyncBatches[Any], connection: Connection) -> None:
    async with pipe:
        while True:
            question = codec.loads(await asyncio.to_thread(connection.recv_bytes), _Question)
            if question.version is not None:
                pipe.advance(question.version)
            else:
                answer = Answer(await anext(pipe, None))
                await asyncio.to_thread(connection.send_bytes, codec.dumps(answer))
