"""Control: the verbs by which a trainer gives an inference server new weights, for three servers.

| | `pause` | `update` | `resume` |
|---|---|---|---|
| `quintain.train.endpoint` | `/pause` | `/update_weights` | `/resume` |
| vLLM | `/pause?mode=keep` | `/start_weight_update`, `/update_weights`, `/finish_weight_update` | `/resume` |
| SGLang | `/pause_generation` | `/update_weights_from_disk` | `/continue_generation` |

Requests in flight are kept: they go on under the new weights. An `Engine` has the same three methods. The requests to
vLLM (0.32, with VLLM_SERVER_DEV_MODE=1) and SGLang (0.5) are those of their documentation, and were not tried on
running servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from quintain.errors import QuintainError, UsageError
from quintain.plugins import package


class Controlled(Protocol):
    """Holder of weights that can be swapped: an Engine, or a Control of one that is served."""

    def pause(self) -> None:
        """Stops drawing between two tokens."""

    def update(self, weights: Mapping[str, Any] | str | Path, version: int) -> None:
        """Replaces weights by tensors, or by those of a file or folder."""

    def resume(self) -> None:
        """Goes on drawing."""


class Control:
    """Client of an inference server's control verbs.

    Args:
        url: Address of the server, with or without "/v1".
        server: Whose verbs.
        timeout_s: Seconds that one request may take.
    """

    def __init__(
        self, url: str, server: Literal["quintain", "vllm", "sglang"] = "quintain", *, timeout_s: float = 600.0
    ) -> None:
        if server not in {"quintain", "vllm", "sglang"}:
            raise UsageError(f"server must be quintain, vllm or sglang, got {server!r}")
        self._httpx: Any = package("httpx", extra="train")
        self.url, self.server = url.rstrip("/").removesuffix("/v1"), server
        self._client = self._httpx.Client(base_url=self.url, timeout=timeout_s)

    def pause(self) -> None:
        """Stops drawing; SGLang computes what was cached anew afterwards, vLLM keeps it."""
        if self.server == "sglang":
            self._post("/pause_generation", json={"mode": "retract"})
        else:
            self._post("/pause", params={"mode": "keep"} if self.server == "vllm" else None)

    def update(self, weights: Mapping[str, Any] | str | Path, version: int) -> None:
        """Replaces weights.

        Args:
            weights: For Quintain tensors by name, or a path. For SGLang a path. For vLLM the `update_info` of its
                weight transfer (`names`, `dtype_names`, `shapes`): the tensors travel by NCCL or IPC, and the trainer
                sends them from another thread while this call waits.
            version: Version of the new weights; vLLM takes none.

        Raises:
            UsageError: The server does not take such weights.
            QuintainError: The server refused, or does not answer.
        """
        if isinstance(weights, Mapping) == (self.server == "sglang") and self.server != "quintain":
            wanted = "a path" if self.server == "sglang" else "a mapping, the update_info of its weight transfer"
            raise UsageError(f"{self.server} takes {wanted}, got a {type(weights).__name__}")
        if self.server == "sglang":
            given = {"model_path": str(weights), "weight_version": str(version)}
            answer = self._post("/update_weights_from_disk", json=given)
            if not answer.json().get("success"):
                raise QuintainError(f"{self.url} did not load {weights}: {answer.text[:1000]}")
        elif self.server == "vllm":
            self._post("/start_weight_update", json={"is_checkpoint_format": True})
            try:
                self._post("/update_weights", json={"update_info": weights})
            finally:
                self._post("/finish_weight_update")
        elif isinstance(weights, Mapping):
            save = package("safetensors.torch", extra="train").save
            data = save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})
            self._post("/update_weights", params={"version": version}, content=data)
        else:
            self._post("/update_weights", json={"path": str(weights), "version": version})

    def resume(self) -> None:
        """Goes on drawing."""
        self._post("/continue_generation" if self.server == "sglang" else "/resume", json={})

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _post(self, path: str, **request: Any) -> Any:
        try:
            answer = self._client.post(path, **request)
        except self._httpx.HTTPError as error:
            raise QuintainError(f"{self.url}{path} does not answer: {type(error).__name__}: {error}") from error
        if answer.status_code != 200:
            raise QuintainError(f"{self.url}{path} answered {answer.status_code}: {answer.text[:1000]}")
        return answer
