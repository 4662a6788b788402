"""Where an object is: the ID of its cluster, its kind, and its name there; and what is claimed with it."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.claims.object_claims import CLUSTER_OBJECTS, OWN, ClaimKey, uid_name
from setpoint.engine.kind import Location, match_location

# A cluster by a kubeconfig of a Secret.
SECRET_PREFIX: Final = "secret:"
_LOCATION: Final = re.compile(r"(\S+) (\S+) (?:([^\s/]+)/)?([^\s/]+) @ (\S+)")
# Characters of names that stay readable in a location.
_PLAIN: Final = ":@.~"
_is_plain: Final = re.compile(r"[A-Za-z0-9_.~:@-]*").fullmatch
# Locations that are kept parsed: those of running steps.
_MAX_PARSED: Final = 256


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """The location of an object; without a name, of all objects of a kind in a namespace.

    `cluster` is the ID of the cluster. A cluster-scoped kind has a namespace here, too: which kinds are namespaced
    is known to the cluster only.
    """

    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str = ""

    @property
    def location(self) -> Location:
        """`apps/v1 Deployment shop/web @ context:prod`."""
        return Location(f"{self.api_version} {self.kind} {self.in_cluster} @ {_quoted(self.cluster)}")

    @property
    def collection(self) -> str:
        """`apps/v1 Deployment shop/* @ context:prod`: what is watched together."""
        return _collection(self.cluster, self.api_version, self.kind, self.namespace)

    @property
    def in_cluster(self) -> str:
        """`shop/web`."""
        name = _quoted(self.name) or "*"
        return f"{_quoted(self.namespace)}/{name}" if self.namespace else name

    @property
    def title(self) -> str:
        """For messages: `Deployment shop/web`."""
        return f"{self.kind} {self.in_cluster}"


def _quoted(text: str) -> str:
    # Most need no quotes, and a match is cheaper than `quote`.
    return text if _is_plain(text) else _with_quotes(text)


@lru_cache(maxsize=_MAX_PARSED)
def _with_quotes(text: str) -> str:
    # Mostly the ID of a cluster, of which there are few.
    return quote(text, safe=_PLAIN)


def _unquoted(text: str) -> str:
    return unquote(text) if "%" in text else text


@lru_cache(maxsize=_MAX_PARSED)
def _collection(cluster: str, api_version: str, kind: str, namespace: str) -> str:
    return ObjectLocation(cluster, api_version, kind, namespace).location


@lru_cache(maxsize=_MAX_PARSED)
def parse_object_location(text: str) -> ObjectLocation:
    """The parsed text of `ObjectLocation.location`."""
    api_version, kind, namespace, name, cluster = match_location(_LOCATION, text).groups()
    name = "" if name == "*" else _unquoted(name)
    return ObjectLocation(_unquoted(cluster), api_version, kind, _unquoted(namespace or ""), name)


@lru_cache(maxsize=_MAX_PARSED)
def object_claim_keys(location: Location) -> tuple[ClaimKey, ...]:
    """The object in every version of its API, and whichever account of a namespace it is reached as."""
    found = _LOCATION.fullmatch(location)
    if found is None:
        return (ClaimKey(CLUSTER_OBJECTS, location),)
    api_version, kind, namespace, name, cluster = found.groups()
    group, is_own = api_version.rpartition("/")[0], cluster.partition(":")[0] == OWN
    named = f"{group} {kind} {namespace}/{name} @ {OWN if is_own else cluster}"
    return (ClaimKey(CLUSTER_OBJECTS, named),)


def object_uid_keys(outputs: JsonObject) -> tuple[ClaimKey, ...]:
    """The object by the uid that its cluster reports; none before it was observed."""
    uid = text_at(outputs, "object", "uid")
    return (ClaimKey(CLUSTER_OBJECTS, uid_name(uid)),) if uid else ()


@lru_cache(maxsize=_MAX_PARSED)
def is_tenants_cluster(location: Location) -> bool:
    """Whether the object is in a cluster by a kubeconfig of a Secret: what that reports, its tenant decides."""
    found = _LOCATION.fullmatch(location)
    return found is None or _unquoted(found[5]).startswith(SECRET_PREFIX)
