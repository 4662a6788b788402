"""What no rule knows about the fixture of a kind."""

from collections.abc import Mapping
from typing import Any, Final

# Fields of the minimal spec, by kind.
SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    # Config Connector sends this one when a spec leaves it out; another writer does not.
    "ComputeBackendService": {"connectionDrainingTimeoutSec": 300},
    "ServiceNetworkingConnection": {
        "service": "servicenetworking.googleapis.com",
        "networkRef": {"external": "projects/some-project/global/networks/some-target"},
    },
    "SecretManagerSecretVersion": {"secretData": {"value": "first"}},
    "ComputeInstance": {"machineType": "e2-small"},
    "DNSRecordSet": {"name": "www.example.com.", "type": "A", "rrdatas": ["192.0.2.1"]},
}
# The field that is varied, by kind.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    # Another one would name another object.
    "DNSRecordSet": ("ttl",),
    # The instance need not be stopped for it.
    "ComputeInstance": ("tags",),
}
# The name of the object, where not any text is one.
_SERVICE: Final = "pubsub.googleapis.com"
_OTHER_SERVICE: Final = "storage.googleapis.com"
NAMES: Final[Mapping[str, str]] = {
    **{"Service": _SERVICE, "ServiceIdentity": _SERVICE},
    # Without a dash.
    "IAMCustomRole": "somerole",
}
OTHER_NAMES: Final[Mapping[str, str]] = {
    **{"Service": _OTHER_SERVICE, "ServiceIdentity": _OTHER_SERVICE},
    "IAMCustomRole": "otherrole",
}
