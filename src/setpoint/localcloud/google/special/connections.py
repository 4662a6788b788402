"""Connections of networks to services: their own methods, and the peering of the network by which one ends."""

from datetime import datetime
from typing import Final

from setpoint.localcloud.google import api_words, operations
from setpoint.localcloud.google.objects import carry_out, refuse_while_pending
from setpoint.localcloud.google.operations import CatalogueObject, ObjectChange
from setpoint.localcloud.google.outputs import ObjectAddress, digest
from setpoint.localcloud.google.reads import CatalogueServices, address_of, body_of, find
from setpoint.localcloud.google.validation import invalid_argument
from setpoint.localcloud.routing import Route, ServiceCall, project_number
from setpoint.localcloud.schema import JsonBody


def _connection(call: ServiceCall, network: str) -> ObjectAddress:
    """A connection has no name of its own: it is that of a network to a service."""
    return address_of(
        "servicenetworking", f"services/{call.part('service')}/connections/{digest(network).encode().hex()}"
    )


def put_connection(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/connections`, or `PATCH …/connections/-`: connects a network, or changes its ranges."""
    body = body_of(call, "network", "reservedPeeringRanges", "peering", "service")
    network = body.get("network")
    if not isinstance(network, str) or not network:
        raise invalid_argument("Required field 'network' not specified.")
    address = _connection(call, network)
    found = services.state.objects.get(address.key)
    if found is not None and call.method == "POST":
        raise api_words.already_exists(address)
    peering = call.part("service").replace(".", "-")
    after = {**body, "peering": peering, "service": f"services/{call.part('service')}"}
    after = services.faults.rewritten(after, address.collection.kinds)
    if found is None:
        found = services.state.objects[address.key] = CatalogueObject(after)
    refuse_while_pending(found, address)
    change = ObjectChange("create" if call.method == "POST" else "update", after, after, "Connection")
    return carry_out(services, address, change, now=call.now, style="longrunning")


def list_connections(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/connections?network=`."""
    prefix, network = f"servicenetworking/services/{call.part('service')}/connections/", call.query.get("network")
    found = [one.body for key, one in sorted(services.state.objects.items()) if key.startswith(prefix)]
    kept = [one for one in found if network in (None, one["network"])]
    return {"connections": kept} if kept else {}


def delete_connection(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/connections/{connection}`: disconnects a network."""
    network = body_of(call, "consumerNetwork").get("consumerNetwork")
    address = _connection(call, str(network))
    refuse_while_pending(find(services, address), address)
    return carry_out(services, address, ObjectChange("delete", None), now=call.now, style="longrunning")


def remove_peering(services: CatalogueServices, call: ServiceCall) -> JsonBody | None:
    """`POST …/networks/{network}/removePeering`: disconnects a service; other peerings are the row's method's."""
    network = address_of("compute", f"projects/{call.part('project')}/global/networks/{call.part('network')}")
    by_number = network.name.replace(call.part("project"), project_number(call.part("project")), 1)
    peering = body_of(call, "name").get("name")
    for key, one in services.state.objects.items():
        is_of_network = one.body.get("network") in (network.name, by_number) and one.body.get("peering") == peering
        if key.startswith("servicenetworking/") and is_of_network:
            find(services, network)
            refuse_while_pending(one, network)
            return _disconnected(services, network, key, call.now)
    return None


def _disconnected(services: CatalogueServices, network: ObjectAddress, connection: str, now: datetime) -> JsonBody:
    """Starts the operation of the network that removes the connection."""
    change, seconds = ObjectChange("removePeering", None), services.operation_seconds
    operation = operations.start(services.state, "compute", network, change, now=now, seconds=seconds)
    operation.target = connection
    operations.let_fail(operation, services.faults)
    services.state.objects[connection].pending = operation.key
    operations.finish_due(services.state, now)
    return operations.operation_view(operation)


_NETWORK: Final = "/projects/{project}/global/networks/{network}"
_CONNECTIONS: Final = "/services/{service}/connections"

PEERING_ROUTES: Final[tuple[Route[CatalogueServices], ...]] = (
    Route("POST", f"{_NETWORK}/removePeering", remove_peering, frozenset({"requestId"})),
)
CONNECTION_ROUTES: Final[tuple[Route[CatalogueServices], ...]] = (
    Route("POST", _CONNECTIONS, put_connection),
    Route("PATCH", f"{_CONNECTIONS}/{{connection}}", put_connection, frozenset({"force", "updateMask"})),
    Route("GET", _CONNECTIONS, list_connections, frozenset({"network"})),
    Route("POST", f"{_CONNECTIONS}/{{connection}}", delete_connection),
)
