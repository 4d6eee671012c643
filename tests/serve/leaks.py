"""Search for a secret in all places that must not have it."""

from __future__ import annotations

import httpx

from tests.serve.serving import Served

ABOUT = ("/v1/episodes", "/v1/openapi.json", "/metrics")


def places(served: Served, value: str) -> list[str]:
    """Files of a server, its error stream and journal among them, and what it answers, of every episode too."""
    files = (path for path in served.folder.rglob("*") if path.is_file())
    found = [str(path) for path in files if value.encode() in path.read_bytes()]
    with httpx.Client(base_url=served.url) as http:
        paths = [*ABOUT]
        for episode in http.get("/v1/episodes?limit=1000").json()["episodes"]:
            paths += [f"/v1/episodes/{episode['id']}{part}" for part in ("", "/trace", "/state", "/journal")]
        return [*found, *(path for path in paths if value in http.get(path).text)]
