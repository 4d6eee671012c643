"""S: the three kinds of worlds: all tools for the agent, a service's tools for its subagent, one service alone."""

from __future__ import annotations

from collections.abc import Mapping

from .description import SERVICES, Service
from .state import Production
from .tools import world

Ops = world("Ops", roles=dict.fromkeys(SERVICES, ("agent",)), module=__name__)
"""The agent has all tools."""
RoutedOps = world("RoutedOps", roles={service: (service,) for service in SERVICES}, module=__name__)
"""Each service's subagent has its tools; the agent has none of them."""
ErrorsOps = world("ErrorsOps", roles={"errors": ("agent",)}, module=__name__)
DatabaseOps = world("DatabaseOps", roles={"database": ("agent",)}, module=__name__)
DeploymentsOps = world("DeploymentsOps", roles={"deployments": ("agent",)}, module=__name__)
ClusterOps = world("ClusterOps", roles={"cluster": ("agent",)}, module=__name__)
DocsOps = world("DocsOps", roles={"docs": ("agent",)}, module=__name__)
CodeOps = world("CodeOps", roles={"code": ("agent",)}, module=__name__)
ALONE: Mapping[Service, type[Production]] = {
    "errors": ErrorsOps,
    "database": DatabaseOps,
    "deployments": DeploymentsOps,
    "cluster": ClusterOps,
    "docs": DocsOps,
    "code": CodeOps,
}
"""The world of each service's own environment."""
