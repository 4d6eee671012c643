"""Episodes in a notebook: the page of an episode in a frame that can reach nothing else.

`%load_ext quintain.studio.notebook` makes each cell whose value is a Trace show it so.
"""

from __future__ import annotations

from html import escape
from typing import Any

from quintain.trace import Trace

from .description import Description
from .page import page


class EpisodeFrame:
    """Page of an episode, which notebooks show.

    Args:
        trace: The episode.
        env: Description of its environment, for *why not 1*; `Description.read` reads that of a run folder.
        height: Height in pixels.
    """

    def __init__(self, trace: Trace, env: Description | None = None, *, height: int = 600) -> None:
        self._trace, self._env, self._height = trace, env, height

    def html(self) -> str:
        """Returns the frame, without access to the notebook, its cookies or the network.

        Raises:
            UsageError: The front end was not built.
        """
        facts: dict[str, Any] = {"reviews": [], "labels": [], "seconds": []}
        title = f"{self._trace.task} member {self._trace.member}"
        made = page(title, [self._trace.to_json()], run=title, facts=[facts], environment=self._env, findings=[])
        source = escape(made.decode("utf-8", "replace"))
        style = f"width:100%;height:{self._height:d}px;border:1px solid #8888"
        return f'<iframe sandbox="allow-scripts" title="{escape(title)}" style="{style}" srcdoc="{source}"></iframe>'

    _repr_html_ = html


def load_ipython_extension(shell: Any) -> None:
    """Lets IPython show traces as frames."""
    shell.display_formatter.formatters["text/html"].for_type(Trace, _shown)


def _shown(trace: Trace) -> str:
    return EpisodeFrame(trace).html()
