"""Refusals, each with an HTTP status and a message for the client; every protocol has its own format for them."""

from __future__ import annotations

from quintain.errors import Failure, QuintainError


class ServeError(QuintainError):
    """Base class: something that was asked of the server and cannot be had."""

    status = 500


class Refused(ServeError):
    """The caller's mistake: a value that cannot be used."""

    status = 400


class Denied(ServeError):
    """No key, a wrong one, or one whose role is not enough.

    Attributes:
        status: 401 without a valid key, 403 with one of another role.
    """

    def __init__(self, message: str, status: int = 401) -> None:
        super().__init__(message)
        self.status = status


class Unknown(ServeError):
    """Environment, task or episode that does not exist for this caller."""

    status = 404


class Conflict(ServeError):
    """Request that does not fit the present state."""

    status = 409


class Gone(ServeError):
    """Episode that was closed while a request waited for it."""

    status = 410


class TooLarge(ServeError):
    """A body or a frame is longer than the server takes."""

    status = 413


class Finished(ServeError):
    """The episode has ended; nothing more can be done in it."""

    status = 409


class Temporary(ServeError):
    """Refusal that may not be repeated when the caller asks again later.

    Attributes:
        retry_after_s: Seconds, 1 and up.
    """

    retry_after_s = 1

    def __init__(self, message: str, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s or self.retry_after_s


class Full(Temporary):
    """A limit is reached."""

    status = 429


class Unavailable(Temporary):
    """The server can do nothing new now: it is being shut down, or what is to be done cannot be written down before."""

    status = 503
    retry_after_s = 5


class Starting(Temporary):
    """The episode's world is still being built."""

    status = 503


class Void(ServeError):
    """The episode failed: whatever comes after it, it has no reward.

    Attributes:
        failure: Who is to blame, and for what.
    """

    status = 500

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"this episode is void: {failure.component} {failure.kind}: {failure.message}")
        self.failure = failure
