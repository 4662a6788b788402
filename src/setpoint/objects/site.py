"""A cluster that somebody names, and the way to it."""

from dataclasses import dataclass

from setpoint.clients.kube_connection import Connection
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.ports import Clock
from setpoint.engine.system_clock import SystemClock
from setpoint.kinds.kubernetes_object.clusters import Clusters


@dataclass(frozen=True, slots=True)
class Site:
    """One cluster, as one user."""

    client: KubernetesClient
    clusters: Clusters
    clock: Clock

    @staticmethod
    def at(connection: Connection) -> "Site":
        """The cluster of a connection; nothing is asked of it yet."""
        client = KubernetesClient(connection)
        return Site(client, Clusters(own=client), SystemClock())
