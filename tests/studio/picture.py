"""Picture of the documentation: `python -m tests.studio.picture` plays a run and writes `docs/pictures/studio*.png`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from quintain.record import read_traces
from tests.cli.program import command
from tests.studio.runs import write
from tests.studio.studio import Reading, started

TARGET = Path(__file__).parents[2] / "docs/pictures/studio.png"
EPISODE = TARGET.with_name("studio-episode.png")
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
        folder = write(home / "runs" / "sales-policy-7", sorted(traces, key=lambda trace: (trace.task, trace.member)))
        for file in ("run.json", "environment.json"):
            shutil.copy(home / "oracle" / file, folder)
        with started(home / "runs", home) as address, Reading() as browser:
            browser.resize(1180, 520)
            browser.show(address)
            browser.until("document.querySelector('tbody tr')")
            browser.run(f"location.hash = '#/sales-policy-7/episodes?where=' + encodeURIComponent({WHERE!r})")
            browser.until("document.querySelectorAll('.scroller .line').length > 5")
            TARGET.write_bytes(browser.picture())
            browser.resize(1180, 620)
            solved = next(trace for trace in traces if trace.score == 1 and len(trace.turns) > 8)
            turn = max(n for n, one in enumerate(solved.turns) if one.state_digest != solved.turns[n - 1].state_digest)
            browser.run(f"location.hash = '#/sales-policy-7/e/{solved.task}/{solved.member}?t={turn - 1}'")
            browser.until(f"document.activeElement.id === 't{turn - 1}'")
            browser.press("d")
            browser.until("document.querySelector('.panel dd')")
            time.sleep(1)  # The page scrolls until the turn stays where it is.
            browser.run("scrollTo(0, 0)")
            EPISODE.write_bytes(browser.picture())


if __name__ == "__main__":
    main()
