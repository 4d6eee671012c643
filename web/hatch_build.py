"""Build hook of wheels and source archives: they hold the studio's page, so that who installs them needs no Node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StudioPage(BuildHookInterface):
    """Builds the page where it is missing; an editable install leaves that to `make web`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before the files are collected.

        Raises:
            RuntimeError: npm is there, and the build fails.
        """
        web = Path(self.root) / "web"
        npm = shutil.which("npm")
        if version == "editable" or (web / "../src/quintain/studio/static/studio.js").resolve().exists():
            return
        if npm is None:
            self.app.display_warning("the studio's page is left out: building it needs Node (npm)")
            return
        for command in (["ci", "--no-audit", "--no-fund", "--ignore-scripts"], ["run", "build"]):
            if subprocess.run([npm, *command], cwd=web, check=False).returncode:
                raise RuntimeError(f"npm {' '.join(command)} failed in {web}: the studio's page cannot be built")
