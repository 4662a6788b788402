"""Where an object is: in which cluster, and under which name there."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from setpoint.engine.kind import Location

_LOCATION: Final = re.compile(r"(\S+) (\S+) (?:([^\s/]+)/)?([^\s/]+) @ (\S+)")
# What stands in names and does no harm in a path that is read by people.
_PLAIN: Final = ":@.~"


@dataclass(frozen=True, slots=True)
class Place:
    """One object, or without a name all objects of a kind in a namespace.

    `cluster` is what Clusters knows it by. A kind without namespaces has one here all the same: which kinds those are
    only the cluster knows.
    """

    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str = ""

    @property
    def location(self) -> Location:
        """`apps/v1 Deployment shop/web @ context:prod`."""
        return Location(f"{self.api_version} {self.kind} {self.in_cluster} @ {quote(self.cluster, safe=_PLAIN)}")

    @property
    def in_cluster(self) -> str:
        """`shop/web`."""
        name = quote(self.name, safe=_PLAIN) or "*"
        return f"{quote(self.namespace, safe=_PLAIN)}/{name}" if self.namespace else name

    @property
    def title(self) -> str:
        """As people name it: `Deployment shop/web`."""
        return f"{self.kind} {self.in_cluster}"


def place_at(text: str) -> Place:
    """What `location` wrote."""
    found = _LOCATION.fullmatch(text)
    assert found is not None, text
    api_version, kind, namespace, name, cluster = found.groups()
    name = "" if name == "*" else unquote(name)
    return Place(unquote(cluster), api_version, kind, unquote(namespace or ""), name)
