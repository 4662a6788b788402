"""What a service sets in its objects: names, links, ids, times, etags, fingerprints, states."""

import base64
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.google.collections import ApiCollection
from setpoint.localcloud.google.members import ApiMember, MemberType
from setpoint.localcloud.routing import project_number
from setpoint.localcloud.schema import JsonBody, member, with_member

_COMPUTE_LINK: Final = "https://www.googleapis.com/compute/v1/"
_COMPUTE_NAME: Final = re.compile(r"projects/[^/]+/(?:global|regions/[^/]+|zones/[^/]+)/.+")
_COMPUTE_PLACE: Final = re.compile(r"(?:global|regions/[^/]+|zones/[^/]+)/.+")
_COMPUTE_HOSTS: Final = re.compile(r"https://(?:www|compute)\.googleapis\.com/compute/(?:v1|beta|alpha)/")
_CREATED: Final = ("createTime", "creationTimestamp", "createdAt", "creationTime")
_UPDATED: Final = ("updateTime", "updatedAt", "lastModifiedAt", "lastModifiedTime", "modifyTime")
_UNIQUE: Final = ("uid", "uuid", "uniqueId")
# The state of an object that is ready, in the order in which an enumeration is searched for it.
_READY: Final = ("READY", "ACTIVE", "RUNNING", "ENABLED", "CREATED", "DEPLOYED", "SUCCEEDED")
_STATES: Final = {
    "alloydb": "READY",
    "cloudfunctions": "ACTIVE",
    "compute": "READY",
    "container": "RUNNING",
    "file": "READY",
    "pubsub": "ACTIVE",
    "redis": "READY",
    "spanner": "READY",
    "vpcaccess": "READY",
    "workflows": "ACTIVE",
}
_COMPUTE_STATES: Final = {"instances": "RUNNING", "addresses": "RESERVED", "vpnTunnels": "ESTABLISHED"}
_PROVISIONED: Final = frozenset({"compute/instances", "container/clusters", "container/nodePools"})
_NAME_SERVERS: Final = [f"ns-cloud-a{number}.googledomains.com." for number in (1, 2, 3, 4)]


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """Where an object is: its collection, its relative name, and the parent's."""

    collection: ApiCollection
    name: str

    @property
    def id(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def key(self) -> str:
        """The name with the API before it: unique in the cloud."""
        return f"{self.collection.api}/{self.name}"

    @property
    def project(self) -> str:
        """The project that it is in, or nothing."""
        found = re.match(r"projects/([^/]+)", self.name)
        return found[1] if found else ""

    @property
    def link(self) -> str:
        """The URL of the object, as the service returns it."""
        row = self.collection.row
        if self.collection.api == "compute":
            return _COMPUTE_LINK + self.name
        return f"https://{row.host}/{row.prefix}{self.name}"


def digest(*parts: object, length: int = 8) -> str:
    """A short text that differs when any part does, as fingerprints and etags are written."""
    content = msgspec.json.encode(parts, order="sorted")
    return base64.b64encode(hashlib.sha256(content).digest()[:length]).decode()


def numeric_id(*parts: object) -> str:
    """An id of nineteen digits, as some services give to their objects."""
    number = int.from_bytes(hashlib.sha256(msgspec.json.encode(parts)).digest()[:8], "big")
    return str(10**18 + number % (8 * 10**18))


def created(address: ObjectAddress, body: JsonBody, now: datetime, serial: int) -> JsonBody:
    """A new object: what the client sent, and what the service adds."""
    collection = address.collection
    body = {**with_links(address, body), **_identity(address, body)}
    unique = str(uuid.UUID(bytes=hashlib.sha256(f"{address.key}/{serial}".encode()).digest()[:16]))
    for name in _outputs(collection, _CREATED):
        body = {**body, name: _time(collection, now)}
    for name in _outputs(collection, _UNIQUE):
        body = {**body, name: numeric_id(address.key, serial) if collection.api == "iam" else unique}
    if collection.api in ("compute", "dns") and collection.singular != "rrset":
        body = {**body, "id": numeric_id(address.key, serial)}
    return touched(address, {**body, **_special(address), **_state(collection)}, now, serial)


def touched(address: ObjectAddress, body: JsonBody, now: datetime, serial: int) -> JsonBody:
    """An object after a write: with the time of it, and new etags and fingerprints."""
    collection = address.collection
    body = with_links(address, body)
    for name in _outputs(collection, _UPDATED):
        body = {**body, name: _time(collection, now)}
    if "etag" in collection.row.concurrency or _is_output(collection, "etag"):
        body = {**body, "etag": digest(address.key, serial)}
    if "fingerprint" in collection.row.concurrency:
        body = {**body, "fingerprint": digest(address.key, serial)}
    return with_inner_fingerprints(collection, body)


def with_inner_fingerprints(collection: ApiCollection, body: JsonBody) -> JsonBody:
    """The fingerprints of parts of an object: of its labels, tags and metadata."""
    if "labelFingerprint" in collection.row.concurrency:
        body = {**body, "labelFingerprint": digest("labels", body.get(collection.row.labels or "labels", {}))}
    for name in ("tags", "metadata"):
        inner = body.get(name)
        if collection.api == "compute" and collection.plural == "instances":
            items = inner.get("items", []) if isinstance(inner, dict) else []
            kept = inner if isinstance(inner, dict) else {}
            body = {**body, name: {**kept, "fingerprint": digest(name, items)}}
    return body


def with_links(address: ObjectAddress, body: JsonBody) -> JsonBody:
    """References as Compute returns them: full links, whatever form they were sent in."""
    if address.collection.api != "compute":
        return body
    return _linked(address.collection.shape, body, address.project)


def _linked(shape: ApiMember, body: JsonBody, project: str) -> JsonBody:
    linked: JsonBody = {}
    for name, value in body.items():
        known = shape.members.get(name)
        linked[name] = value if known is None else _linked_value(known, value, project)
    return linked


def _linked_value(known: ApiMember, value: object, project: str) -> object:
    if isinstance(value, dict) and known.type is MemberType.OBJECT:
        return _linked(known, value, project)
    if isinstance(value, list) and known.element is not None:
        return [_linked_value(known.element, one, project) for one in value]
    if known.is_reference and isinstance(value, str):
        return _link(value, project)
    return value


def reference_texts(shape: ApiMember, body: JsonBody, at: str = "") -> Iterator[tuple[str, str]]:
    """The references in an object, each with its path."""
    for name, value in body.items():
        known = shape.members.get(name)
        if known is not None:
            yield from _texts(known, value, f"{at}.{name}" if at else name)


def _texts(known: ApiMember, value: object, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and known.type is MemberType.OBJECT:
        yield from reference_texts(known, value, at)
    elif isinstance(value, list) and known.element is not None:
        for number, one in enumerate(value):
            yield from _texts(known.element, one, f"{at}[{number}]")
    elif known.is_reference and isinstance(value, str):
        yield at, value


def _link(text: str, project: str) -> str:
    text = _COMPUTE_HOSTS.sub("", text)
    if _COMPUTE_PLACE.fullmatch(text):
        text = f"projects/{project}/{text}"
    return _COMPUTE_LINK + text if _COMPUTE_NAME.fullmatch(text) else text


def _identity(address: ObjectAddress, body: JsonBody) -> JsonBody:
    collection = address.collection
    match collection.api:
        case "compute":
            return _compute_identity(address)
        case "bigquery":
            return _bigquery_identity(address, body)
        case "dns":
            return {"kind": f"dns#{collection.singular}", "name": body.get("name", address.id)}
        case "iam" if collection.plural == "serviceAccounts":
            return {"name": address.name, "email": address.id, "projectId": address.project}
        case _ if _has_own_name(collection):
            return {collection.row.id.name: address.id}
        case _ if collection.has_short_names:
            return {"name": address.id, **({"selfLink": address.link} if _is_output(collection, "selfLink") else {})}
        case _:
            return {"name": address.name}


def _has_own_name(collection: ApiCollection) -> bool:
    """Whether the member `name` is the client's, as the display name of a project is."""
    known = collection.shape.members.get("name")
    return collection.row.id.where == "body" and collection.row.id.name != "name" and not (known and known.output_only)


def _compute_identity(address: ObjectAddress) -> JsonBody:
    identity = {"kind": f"compute#{address.collection.singular}", "name": address.id, "selfLink": address.link}
    if found := re.match(r"projects/[^/]+/(region|zone)s/[^/]+", address.name):
        identity[found[1]] = _COMPUTE_LINK + found[0]
    if _is_output(address.collection, "selfLinkWithId"):
        identity["selfLinkWithId"] = address.link
    return identity


def _bigquery_identity(address: ObjectAddress, body: JsonBody) -> JsonBody:
    parts = address.name.split("/")
    names = dict(zip((f"{one.removesuffix('s')}Id" for one in parts[::2]), parts[1::2], strict=True))
    project, *rest = names.values()
    return {
        "kind": f"bigquery#{address.collection.singular}",
        "id": f"{project}:{'.'.join(rest)}",
        "selfLink": address.link,
        f"{address.collection.singular}Reference": names,
        **({"location": "US"} if "location" not in body and address.collection.singular == "dataset" else {}),
        **({"type": "TABLE"} if address.collection.singular == "table" else {}),
    }


def _special(address: ObjectAddress) -> Mapping[str, object]:
    match address.collection.api, address.collection.plural:
        case "dns", "managedZones":
            return {"nameServers": _NAME_SERVERS}
        case "logging", "sinks":
            number = project_number(address.project)
            return {"writerIdentity": f"serviceAccount:service-{number}@gcp-sa-logging.iam.gserviceaccount.com"}
        case "redis", "instances":
            return {"host": "10.0.0.3", "port": 6379}
        case _:
            return {}


def _state(collection: ApiCollection) -> JsonBody:
    states: JsonBody = {}
    for name in ("state", "status", "lifecycleState"):
        known = collection.shape.members.get(name)
        if known is None or not known.output_only:
            continue
        value = next((one for one in _READY if one in known.values), None) or _known_state(collection)
        if value is not None and (known.values == () or value in known.values):
            states = {**states, name: value}
    return states


def _known_state(collection: ApiCollection) -> str | None:
    if collection.api == "compute":
        return _COMPUTE_STATES.get(collection.plural, _STATES["compute"])
    return _STATES.get(collection.api)


def while_created(collection: ApiCollection, body: JsonBody) -> JsonBody:
    """An object as it is while the operation that creates it runs."""
    state = "PROVISIONING" if f"{collection.api}/{collection.plural}" in _PROVISIONED else "CREATING"
    return {**body, **dict.fromkeys(_state(collection), state)}


def _outputs(collection: ApiCollection, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if _is_output(collection, name)]


def _is_output(collection: ApiCollection, name: str) -> bool:
    known = collection.shape.members.get(name)
    return (known is not None and known.output_only and name not in ("selfLink", "etag")) or _listed(collection, name)


def _listed(collection: ApiCollection, name: str) -> bool:
    return name in collection.row.output_only


def _time(collection: ApiCollection, now: datetime) -> str:
    return str(int(now.timestamp() * 1000)) if collection.api == "bigquery" else timestamp(now)


def id_in(body: JsonBody, path: str) -> str | None:
    """The id that a body has at a dotted path, if it is text."""
    found = member(body, path)
    return found if isinstance(found, str) and found else None


def with_id(body: JsonBody, path: str, id_: str) -> JsonBody:
    """A body with its id at a dotted path."""
    return with_member(body, path, id_)
