"""The files that the page on production shows are those that lie beside it."""

from __future__ import annotations

from pathlib import Path

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
