"""Operations of the services of the catalogue: their own forms, and what happens when their time is up."""

import re
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, field

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.faults import Faults
from setpoint.localcloud.google.outputs import ObjectAddress, numeric_id
from setpoint.localcloud.schema import JsonBody

_COMPUTE_LINK: Final = "https://www.googleapis.com/compute/v1/"
_MAX_FINISHED: Final = 1000
# The longest that a `wait` takes, as Compute documents it.
_MAX_WAIT_SECONDS: Final = 120.0
_CODES: Final = {
    "CANCELLED": 1,
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "ALREADY_EXISTS": 6,
    "PERMISSION_DENIED": 7,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "ABORTED": 10,
    "UNAVAILABLE": 14,
}
_INTERNAL: Final = 13
_PLACE: Final = re.compile(r"(projects/[^/]+/(?:global|regions/[^/]+|zones/[^/]+))/")
_LOCATION: Final = re.compile(r"((?:projects|folders|organizations)/[^/]+/locations/[^/]+)(?:/|$)")
_ORGANIZATION: Final = re.compile(r"(organizations/[^/]+)(?:/|$)")
# Services whose operations are below the object that they change.
_BELOW_OBJECT: Final = frozenset({"spanner", "firestore"})


class CatalogueObject(Struct):
    """An object. `pending`: the key of the operation that is changing it; `serial` counts its writes."""

    body: JsonBody
    serial: int = 1
    pending: str = ""
    # What the service keeps and does not return with the object: a secret's payload, a zone's records.
    hidden: JsonBody = field(default_factory=dict)


class CatalogueOperation(Struct):
    """An operation. At `ends` it takes effect, or fails with its error and changes nothing."""

    key: str
    api: str
    style: str
    verb: str
    # The key, name and link of the object.
    target: str
    target_name: str
    target_link: str
    inserted: float
    ends: float
    api_version: str = "v1"
    # The object afterwards; none: it is removed.
    after: JsonBody | None = None
    # What the service keeps of the object afterwards and does not return with it; none: as before.
    hidden: JsonBody | None = None
    response: JsonBody | None = None
    response_type: str = ""
    error: JsonBody | None = None
    is_finished: bool = False

    @property
    def name(self) -> str:
        """The relative name of the operation."""
        return self.key.partition("/")[2]


class CatalogueState(Struct):
    """All objects and operations, by `API/relative name`; and the IAM policies of objects and projects."""

    objects: dict[str, CatalogueObject] = field(default_factory=dict)
    operations: dict[str, CatalogueOperation] = field(default_factory=dict)
    policies: dict[str, JsonBody] = field(default_factory=dict)
    count: int = 0


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A change of an object to carry out now or at the end of an operation. Without `after` it is removed."""

    verb: str
    after: JsonBody | None
    # What the finished operation returns.
    response: JsonBody | None = None
    response_type: str = ""
    # What the service keeps of the object afterwards and does not return with it; none: as before.
    hidden: JsonBody | None = None


def start(
    state: CatalogueState, style: str, address: ObjectAddress, change: ObjectChange, *, now: datetime, seconds: float
) -> CatalogueOperation:
    """A new operation that carries out the change after `seconds`."""
    state.count += 1
    collection = address.collection
    operation = CatalogueOperation(
        key=f"{collection.api}/{_operation_name(style, address, state.count)}",
        api=collection.api,
        style=style,
        verb=change.verb,
        target=address.key,
        target_name=address.name,
        target_link=address.link,
        inserted=now.timestamp(),
        ends=now.timestamp() + seconds,
        api_version=collection.row.api_version,
        after=change.after,
        hidden=change.hidden,
        response=change.response,
        response_type=change.response_type,
    )
    state.operations[operation.key] = operation
    return operation


def let_fail(operation: CatalogueOperation, faults: Faults) -> None:
    """Lets the operation fail when a fault says so."""
    errors = faults.operation_error(operation.verb, operation.target_name)
    if errors is not None:
        first = errors["errors"][0]
        operation.error = {"code": first["code"], "message": first["message"]}


def finish_due(state: CatalogueState, now: datetime) -> None:
    """Carries out every operation whose time is up, in the order of their ends."""
    due = [one for one in state.operations.values() if not one.is_finished and one.ends <= now.timestamp()]
    for operation in sorted(due, key=lambda one: one.ends):
        _finish(state, operation)
    if due:
        _forget_old(state)


def _finish(state: CatalogueState, operation: CatalogueOperation) -> None:
    operation.is_finished = True
    found = state.objects.get(operation.target)
    if found is None or found.pending != operation.key:
        return
    found.pending = ""
    if operation.error is not None:
        if operation.verb in ("create", "insert"):
            del state.objects[operation.target]
    elif operation.after is None:
        remove(state, operation.target)
    else:
        found.body = operation.after
        found.hidden = found.hidden if operation.hidden is None else operation.hidden


def remove(state: CatalogueState, key: str) -> None:
    """Removes an object, with all that is below it, and their policies."""
    for group in (state.objects, state.policies):
        for one in [one for one in group if one == key or one.startswith(f"{key}/")]:
            del group[one]


def _forget_old(state: CatalogueState) -> None:
    finished = [key for key, one in state.operations.items() if one.is_finished]
    for key in finished[: max(0, len(finished) - _MAX_FINISHED)]:
        del state.operations[key]


def seconds_left(operation: CatalogueOperation, now: datetime) -> float:
    """How long a `wait` for the operation takes."""
    return min(max(operation.ends - now.timestamp(), 0.0), _MAX_WAIT_SECONDS)


def _operation_name(style: str, address: ObjectAddress, number: int) -> str:
    unique = numeric_id(address.key, number)
    if style == "compute":
        place = _PLACE.match(address.name)
        scope = place[1] if place else f"projects/{address.project}/global" if address.project else "locations/global"
        return f"{scope}/operations/operation-{unique}"
    if style == "dns" or address.collection.api in _BELOW_OBJECT:
        return f"{address.name}/operations/{unique}"
    if address.collection.api == "apigee" and (found := _ORGANIZATION.match(address.name)):
        return f"{found[1]}/operations/{unique}"
    location = _LOCATION.match(address.name)
    return f"{location[1]}/operations/operation-{unique}" if location else f"operations/operation-{unique}"


# --- Views ------------------------------------------------------------------------------------------------------------


def operation_view(operation: CatalogueOperation) -> JsonBody:
    """The operation as its service returns it."""
    match operation.style:
        case "compute":
            return _compute_view(operation)
        case "container":
            return _container_view(operation)
        case "dns":
            return _dns_view(operation)
        case _:
            return _longrunning_view(operation)


def _longrunning_view(operation: CatalogueOperation) -> JsonBody:
    package = f"type.googleapis.com/google.cloud.{operation.api}.{operation.api_version}"
    metadata = {
        "@type": f"{package}.OperationMetadata",
        "apiVersion": operation.api_version,
        "createTime": _at(operation.inserted),
        "target": operation.target_name,
        "verb": operation.verb,
    }
    view: JsonBody = {"name": operation.name, "metadata": metadata}
    if not operation.is_finished:
        return view
    view = {**view, "done": True, "metadata": {**metadata, "endTime": _at(operation.ends)}}
    if operation.error is not None:
        return {**view, "error": {**operation.error, "code": _rpc_code(operation.error)}}
    if operation.response is None:
        return {**view, "response": {"@type": "type.googleapis.com/google.protobuf.Empty"}}
    return {**view, "response": {"@type": f"{package}.{operation.response_type}", **operation.response}}


def _compute_view(operation: CatalogueOperation) -> JsonBody:
    name = operation.name.rpartition("/")[2]
    view: JsonBody = {
        "kind": "compute#operation",
        "id": numeric_id(name),
        "name": name,
        "operationType": {"create": "insert"}.get(operation.verb, operation.verb),
        "targetLink": operation.target_link,
        "targetId": numeric_id(operation.target),
        "user": "user@example.com",
        "insertTime": _at(operation.inserted),
        "startTime": _at(operation.inserted),
        "selfLink": _COMPUTE_LINK + operation.name,
        "status": "DONE" if operation.is_finished else "RUNNING",
        "progress": 100 if operation.is_finished else 0,
    }
    if found := re.match(r"projects/[^/]+/(region|zone)s/[^/]+", operation.name):
        view[found[1]] = _COMPUTE_LINK + found[0]
    if operation.is_finished:
        view["endTime"] = _at(operation.ends)
        if operation.error is not None:
            failure = {"error": {"errors": [operation.error]}, "httpErrorStatusCode": 400}
            view = {**view, **failure, "httpErrorMessage": "BAD REQUEST"}
    return view


def _container_view(operation: CatalogueOperation) -> JsonBody:
    location = _LOCATION.match(operation.name)
    view: JsonBody = {
        "name": operation.name.rpartition("/")[2],
        "operationType": _container_type(operation),
        "selfLink": f"https://container.googleapis.com/{operation.api_version}/{operation.name}",
        "targetLink": operation.target_link,
        "startTime": _at(operation.inserted),
        "status": "DONE" if operation.is_finished else "RUNNING",
        "zone": location[1].rpartition("/")[2] if location else "",
    }
    if not operation.is_finished:
        return view
    view = {**view, "endTime": _at(operation.ends)}
    if operation.error is None:
        return view
    message = operation.error["message"]
    return {**view, "statusMessage": message, "error": {"code": _rpc_code(operation.error), "message": message}}


def _container_type(operation: CatalogueOperation) -> str:
    what = "NODE_POOL" if "/nodePools/" in operation.target_name else "CLUSTER"
    return f"{operation.verb.upper()}_{what}" if operation.verb in ("create", "update", "delete") else "UPDATE_CLUSTER"


def _dns_view(operation: CatalogueOperation) -> JsonBody:
    return {
        "kind": "dns#operation",
        "id": operation.name.rpartition("/")[2],
        "startTime": _at(operation.inserted),
        "status": "done" if operation.is_finished else "pending",
        "type": operation.verb,
        "user": "user@example.com",
        "zoneContext": {"newValue": operation.after or {}},
    }


def _rpc_code(error: JsonBody) -> int:
    return _CODES.get(str(error["code"]), _INTERNAL)


def _at(seconds: float) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))
