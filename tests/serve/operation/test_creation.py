"""A session whose creation was not answered, because its server was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.operation.again import DYING, mortal
from tests.serve.operation.test_recovery import output
from tests.serve.ors.confiding import named

CONFIDING = Path(__file__).parents[1] / "ors" / "confiding.py"


def test_session_whose_creation_was_not_answered_is_created_once(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", before=DYING) as server:
        server.wish("after Created")
        with pytest.raises(OSError, match=r"reset|closed"):
            server.create("s")
        server.start()
        other = {"split": "train", "index": 1}
        assert server.ask("POST", "/create", "s", body=other)[0] == 400
        server.create("s")
        server.create("s")  # As long as nothing was done in it.
        assert output(server.call("s", "add", by=1)) == "The count is 1."
        assert server.ask("POST", "/create", "s", body={"split": "train", "index": 2})[0] == 400
        server.again()
        assert server.ask("POST", "/create", "s", body={"split": "train", "index": 2})[0] == 400
        assert output(server.call("s", "add", by=1)) == "The count is 2."


@pytest.mark.slow
def test_secrets_of_a_lost_creation_are_given_again(tmp_path: Path) -> None:
    with mortal(tmp_path, f"{CONFIDING}:env", before=DYING) as server:
        server.wish("after Created")
        with pytest.raises(OSError, match=r"reset|closed"):
            server.create("s", index=0, secrets={"KEY": "value"})
        server.start()
        server.create("s", index=0, secrets={"KEY": "value"})
        assert output(server.call("s", "read", of="KEY")) == named("value")
