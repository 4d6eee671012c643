"""`quintain product`: one line with the address, and a product behind it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

from quintain.products import zendesk
from tests.cli.conftest import Call
from tests.products.conftest import basic


def test_product_prints_its_address_and_answers_until_it_is_stopped() -> None:
    command = [sys.executable, "-m", "quintain", "product", "zendesk", "--tickets", "2", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            facts = json.loads(process.stdout.readline())
            assert (list(facts), facts["email"]) == (["url", "email", "token", "pages", "control"], zendesk.ADMIN)
            asked = urllib.request.Request(
                f"{facts['url']}/api/v2/tickets/count.json", headers=basic(token=facts["token"])
            )
            with urllib.request.urlopen(asked, timeout=20) as response:
                assert json.load(response)["count"]["value"] == 2
            with urllib.request.urlopen(facts["pages"], timeout=20) as response:
                assert b"<h1>Sign in</h1>" in response.read()
            control = urllib.request.Request(f"{facts['control']}advance?seconds=1", method="POST")
            with urllib.request.urlopen(control, timeout=20) as response:
                assert response.status == 200
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) in {0, 143}


def test_unknown_product_is_refused(call: Call) -> None:
    ended = call("product", "nothing")
    assert ended.status == 2
    assert "'zendesk'" in ended.err
