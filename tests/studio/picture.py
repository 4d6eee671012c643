"""Picture of the documentation: `python -m tests.studio.picture` plays a run and writes `docs/pictures/studio.png`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from quintain.record import read_traces
from tests.cli.program import command
from tests.studio.runs import write
from tests.studio.studio import Reading, started

TARGET = Path(__file__).parents[2] / "docs/pictures/studio.png"
WHERE = "turns>=3 -level:easy"


def main() -> None:
    """Draws the table of a run in which one member of each group plays the solution, two at random."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        for agent, group in (("oracle", "1"), ("random", "2")):
            played = command("run", "sales", "-q", "--agent", agent, "--tasks", "40", "--group", group, "--out", agent)
            subprocess.run(played, cwd=home, check=True, capture_output=True)
        traces = [*read_traces(home / "oracle"), *read_traces(home / "random")]
        for trace in traces:
            trace.member += trace.agent == "random"
            trace.agent = "policy"
        write(home / "runs" / "sales-policy-7", sorted(traces, key=lambda trace: (trace.task, trace.member)))
        with started(home / "runs", home) as address, Reading() as browser:
            browser.resize(1180, 520)
            browser.show(address)
            browser.until("document.querySelector('tbody tr')")
            browser.run(f"location.hash = '#/sales-policy-7/episodes?where=' + encodeURIComponent({WHERE!r})")
            browser.until("document.querySelectorAll('.scroller .line').length > 5")
            TARGET.write_bytes(browser.picture())


if __name__ == "__main__":
    main()
