"""The files that the page on production shows are those that lie beside it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


def test_the_container_file_is_the_one_of_the_page() -> None:
    page = (DOCS / "how-to" / "serve-in-production.md").read_text()
    file = (DOCS / "examples" / "Dockerfile").read_text()
    assert f"```dockerfile\n{file}```" in page


def test_the_examples_use_options_that_there_are() -> None:
    from quintain.cli.serve import serve

    known = {name for option in serve.params for name in option.opts}
    for file in (DOCS / "examples").iterdir():
        used = {word.strip('",') for word in file.read_text().partition("quintain serve")[2].split()}
        options = {word for word in used if word.startswith("--") and "=" not in word}
        assert options <= known | {"--no-cache-dir"}, file


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is of systemd, which is not here")
def test_systemd_understands_the_unit_and_finds_it_well_shut(tmp_path: Path) -> None:
    unit = tmp_path / "quintain.service"
    text = (DOCS / "examples" / "quintain.service").read_text()
    unit.write_text(text.replace("/opt/quintain/bin/quintain", sys.executable))
    for asked in (["verify"], ["security", "--offline=true", "--threshold=40"]):
        said = subprocess.run(["systemd-analyze", *asked, str(unit)], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout + said.stderr
