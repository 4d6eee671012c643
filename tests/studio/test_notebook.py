"""Episodes in notebooks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from quintain.studio import page
from quintain.studio.notebook import EpisodeFrame
from tests.studio.runs import HOSTILE, trace
from tests.studio.studio import Reading, missing


def test_ipython_shows_a_trace_as_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("page.js", "studio.css"):
        (tmp_path / name).write_text("built")
    monkeypatch.setattr(page, "STATIC", tmp_path)
    shells = pytest.importorskip("IPython.core.interactiveshell", reason="pip install ipython")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = shells.InteractiveShell()
    shell.run_line_magic("load_ext", "quintain.studio.notebook")
    shown, _ = shell.display_formatter.format(trace(HOSTILE))
    assert shown["text/html"] == EpisodeFrame(trace(HOSTILE)).html()
    assert "text/html" not in shell.display_formatter.format(page)[0]


def test_a_frame_holds_only_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("page.js", "studio.css"):
        (tmp_path / name).write_text('<b>"built"</b>')
    monkeypatch.setattr(page, "STATIC", tmp_path)
    made = EpisodeFrame(trace(HOSTILE), height=300).html()
    assert re.findall(r"<(/?\w+)", made) == ["iframe", "/iframe"]
    assert made.startswith('<iframe sandbox="allow-scripts" title="')
    assert "height:300px" in made


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_frame_shows_the_episode_and_reaches_nothing(tmp_path: Path) -> None:
    frame = EpisodeFrame(trace("lend", 4, say=HOSTILE)).html()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><script>var secret = 1</script>{frame}")
    with Reading() as browser:
        browser.open(tmp_path / "notebook.html")
        heading, secret = browser.on(_look)
        assert heading == "lend member 4"
        assert "SecurityError" in secret
        assert {url.partition(":")[0] for url in browser.requests()} <= {"file", "about", "data"}
        assert browser.complaints() == []


def _look(page: Page) -> tuple[str | None, str]:
    """Returns the heading of the frame, and what comes of reaching out of it."""
    heading = page.frame_locator("iframe").get_by_role("heading", level=1).text_content()
    reach = "try { String(parent.secret) } catch (error) { error.name }"
    return heading, str(page.frames[1].evaluate(reach))
