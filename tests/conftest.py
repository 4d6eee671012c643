"""What all tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no bug, and a run of CI is repeatable; at home Hypothesis goes on looking for new cases.
settings.register_profile("quintain", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("quintain")


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Base images of databases lie in a folder of their own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUINTAIN_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The folder of published data sets and the verdicts of their own scorers. The repository doesn't hold it."""
    given = os.environ.get("QUINTAIN_DATA")
    path = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"no reference data at {path}; set QUINTAIN_DATA to the folder that holds it")
    return path
