"""The clusters of one process of the provider: each is reached once, however many resources are in it."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from setpoint.core.canonical import digest
from setpoint.terraform.cty_values import Value, is_known
from setpoint.terraform.plain_trees import tree_of

if TYPE_CHECKING:
    from setpoint.objects.site import Site


class Place(msgspec.Struct, frozen=True):
    """One object of one cluster."""

    cluster: str
    location: str


class Sites:
    """Every cluster that was needed so far. `usual` is the one of those that name none."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.usual: Value = None
        self._environment = environment
        self._open: dict[str, Site] = {}

    def are_known(self, cluster: Value) -> bool:
        """Whether it can be said which cluster is meant."""
        return is_known(self._meant(cluster))

    def site(self, cluster: Value) -> "Site":
        """The cluster that is meant; UserError says what is wrong with it."""
        key = self.key(cluster)
        if key not in self._open:
            # Only who has something to ask of a cluster pays for loading what reaches it.
            from setpoint.objects.site import Site
            from setpoint.terraform.connections import connection_of

            self._open[key] = Site.at(connection_of(self._meant(cluster), self._environment))
        return self._open[key]

    def key(self, cluster: Value) -> str:
        """What tells one cluster, and user, from another."""
        return digest([tree_of(self._meant(cluster))])

    def _meant(self, cluster: Value) -> Value:
        return self.usual if cluster is None else cluster
