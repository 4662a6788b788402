"""What the status shows of an instance."""

from collections.abc import Sequence

import msgspec

from setpoint.core.values import Json
from setpoint.engine.resource import Tree
from setpoint.kinds.gcp.sql_instance.live import Aside, IpAddress


def instance_outputs(aside: Aside) -> Tree:
    """Addresses, links, certificates: all that the service says and nobody asks for."""
    addresses = aside.ipAddresses or []
    found: dict[str, Json] = {
        "availableMaintenanceVersions": aside.availableMaintenanceVersions,
        "connectionName": aside.connectionName,
        "dnsName": aside.dnsName,
        "firstIpAddress": addresses[0].ipAddress if addresses else None,
        "instanceType": aside.instanceType,
        "ipAddress": [msgspec.to_builtins(one) for one in addresses],
        "observedState": _observed(aside),
        "privateIpAddress": _first("PRIVATE", addresses),
        "pscServiceAttachmentLink": aside.pscServiceAttachmentLink,
        "publicIpAddress": _first("PRIMARY", addresses),
        "selfLink": aside.selfLink,
        "serverCaCert": None if aside.serverCaCert is None else msgspec.to_builtins(aside.serverCaCert),
        "serviceAccountEmailAddress": aside.serviceAccountEmailAddress,
    }
    return {name: value for name, value in found.items() if value}


def _first(type_: str, addresses: Sequence[IpAddress]) -> str | None:
    return next((one.ipAddress for one in addresses if one.type == type_), None)


def _observed(aside: Aside) -> Json:
    cluster = aside.replicationCluster
    shown = {} if cluster is None else msgspec.to_builtins(cluster)
    return {"replicationCluster": shown} if shown else {}
