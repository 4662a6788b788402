"""Cloud DNS record sets: kept in their zone, changed by `changes` or one by one."""

from typing import Final

from setpoint.localcloud import api_errors
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.google.collections import ApiPath, collection_of
from setpoint.localcloud.google.members import ApiMember, MemberType
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.localcloud.google.outputs import ObjectAddress
from setpoint.localcloud.google.reads import CatalogueServices, find
from setpoint.localcloud.google.validation import invalid_argument, validated
from setpoint.localcloud.routing import Route, ServiceCall
from setpoint.localcloud.schema import JsonBody

_TEXT: Final = ApiMember(MemberType.TEXT)
_TEXTS: Final = ApiMember(MemberType.LIST, element=_TEXT)
_RECORD: Final = ApiMember(
    MemberType.OBJECT,
    members={
        "name": _TEXT,
        "type": _TEXT,
        "ttl": ApiMember(MemberType.INTEGER),
        "rrdatas": _TEXTS,
        "signatureRrdatas": _TEXTS,
        "routingPolicy": ApiMember(MemberType.ANY),
        "kind": ApiMember(MemberType.ANY, output_only=True),
    },
)
_RECORDS: Final = ApiMember(MemberType.LIST, element=_RECORD)
_OUTPUT: Final = ApiMember(MemberType.ANY, output_only=True)
_CHANGE: Final = ApiMember(
    MemberType.OBJECT,
    members={
        "additions": _RECORDS,
        "deletions": _RECORDS,
        **dict.fromkeys(("id", "kind", "startTime", "status", "isServing"), _OUTPUT),
    },
)
_KIND: Final = "dns#resourceRecordSet"
_KINDS: Final = ("DNSRecordSet",)


def create_change(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/changes`: removes and adds record sets, all of them or none."""
    address, zone = _zone(services, call)
    change = validated(_CHANGE, call.body)
    records = _records(zone, address)
    for one in change.get("deletions", []):
        if not _same_records(records.pop(_key(one), None), one):
            raise _refused(412, "conditionNotMet", f"Precondition not met for 'entity.change.deletions' {_key(one)}")
    for one in change.get("additions", []):
        _check(one)
        if _key(one) in records:
            raise _exists(one)
        records[_key(one)] = {**one, "kind": _KIND}
    return _store(zone, records, change, call)


def get_change(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/changes/{change}`: done when it was made."""
    _, zone = _zone(services, call)
    for one in zone.hidden.get("changes", []):
        if one["id"] == call.part("change"):
            return dict(one)
    raise _refused(404, "notFound", f"The 'parameters.changeId' resource named '{call.part('change')}' does not exist.")


def list_changes(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/changes`: the newest first."""
    _, zone = _zone(services, call)
    return {"kind": "dns#changesListResponse", "changes": list(reversed(zone.hidden.get("changes", [])))}


def list_records(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/rrsets`, of one name and type where the query says so."""
    address, zone = _zone(services, call)
    name, type_ = call.query.get("name"), call.query.get("type")
    found = [
        one
        for _, one in sorted(_records(zone, address).items())
        if name in (None, one["name"]) and type_ in (None, one["type"])
    ]
    answer: JsonBody = {"kind": "dns#resourceRecordSetsListResponse"}
    return {**answer, "rrsets": found} if found else answer


def get_record(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/rrsets/{name}/{type}`."""
    address, zone = _zone(services, call)
    found = _records(zone, address).get(f"{call.part('name')} {call.part('type')}")
    if found is None:
        raise _no_record(call)
    return found


def create_record(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/rrsets`."""
    address, zone = _zone(services, call)
    record = validated(_RECORD, call.body)
    _check(record)
    records = _records(zone, address)
    if _key(record) in records:
        raise _exists(record)
    record = services.faults.rewritten(record, _KINDS)
    records[_key(record)] = {**record, "kind": _KIND}
    _store(zone, records, {"additions": [record]}, call)
    return records[_key(record)]


def patch_record(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`PATCH …/rrsets/{name}/{type}`."""
    before = get_record(services, call)
    address, zone = _zone(services, call)
    after = {**before, **validated(_RECORD, call.body)}
    _check(after)
    records = _records(zone, address)
    if _key(after) != _key(before):
        raise invalid_argument("The name and the type of a record set cannot change.")
    after = records[_key(after)] = services.faults.rewritten(after, _KINDS)
    _store(zone, records, {"deletions": [before], "additions": [after]}, call)
    return after


def delete_record(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`DELETE …/rrsets/{name}/{type}`."""
    before = get_record(services, call)
    address, zone = _zone(services, call)
    records = _records(zone, address)
    if before["type"] in ("NS", "SOA") and before["name"] == zone.body.get("dnsName"):
        raise invalid_argument(f"The record set '{_key(before)}' of the zone itself cannot be deleted.")
    del records[_key(before)]
    _store(zone, records, {"deletions": [before]}, call)
    return {}


def delete_zone(services: CatalogueServices, call: ServiceCall) -> JsonBody | None:
    """`DELETE …/managedZones/{zone}`: refused while it has records of its own; else the row's method goes on."""
    address, zone = _zone(services, call)
    own = [one for one in _records(zone, address).values() if one["type"] not in ("NS", "SOA")]
    if own:
        message = f"The resource named '{address.id}' cannot be deleted because it contains one or more 'rrsets'."
        raise _refused(400, "containerNotEmpty", message)
    return None


def _zone(services: CatalogueServices, call: ServiceCall) -> tuple[ObjectAddress, CatalogueObject]:
    segments = ("projects", call.part("project"), "managedZones", call.part("zone"))
    collection = collection_of("dns", ApiPath("", "", segments))
    if collection is None:
        raise api_errors.not_found()
    address = ObjectAddress(collection, "/".join(segments))
    return address, find(services, address)


def _records(zone: CatalogueObject, address: ObjectAddress) -> dict[str, JsonBody]:
    """The record sets of a zone by name and type; a new zone has those of its name servers."""
    if "records" in zone.hidden:
        return dict(zone.hidden["records"])
    name, servers = str(zone.body.get("dnsName", f"{address.id}.")), zone.body.get("nameServers") or ["ns."]
    own = {"kind": _KIND, "name": name, "ttl": 21600}
    start = f"{servers[0]} cloud-dns-hostmaster.google.com. 1 21600 3600 259200 300"
    own_records = ({**own, "type": "NS", "rrdatas": servers}, {**own, "type": "SOA", "rrdatas": [start]})
    return {_key(one): one for one in own_records}


def _store(zone: CatalogueObject, records: dict[str, JsonBody], change: JsonBody, call: ServiceCall) -> JsonBody:
    made = zone.hidden.get("changes", [])
    full = {
        **change,
        "kind": "dns#change",
        "id": str(len(made) + 1),
        "startTime": timestamp(call.now),
        "status": "done",
    }
    zone.hidden = {**zone.hidden, "records": records, "changes": [*made, full]}
    return full


def _key(record: JsonBody) -> str:
    return f"{record.get('name')} {record.get('type')}"


def _same_records(live: JsonBody | None, given: JsonBody) -> bool:
    if live is None:
        return False
    return all(live.get(name) == given.get(name) for name in ("rrdatas", "ttl", "routingPolicy"))


def _check(record: JsonBody) -> None:
    if not str(record.get("name", "")).endswith("."):
        raise invalid_argument(f"Invalid value for 'entity.rrset.name': '{record.get('name')}'")
    if not record.get("type"):
        raise invalid_argument("Required field 'entity.rrset.type' not specified.")
    if not record.get("rrdatas") and not record.get("routingPolicy"):
        raise invalid_argument("Required field 'entity.rrset.rrdatas' not specified.")


def _exists(record: JsonBody) -> CloudApiError:
    message = f"The resource 'entity.rrset' named '{record['name']} ({record['type']})' already exists"
    return _refused(409, "alreadyExists", message, "ALREADY_EXISTS")


def _no_record(call: ServiceCall) -> CloudApiError:
    message = f"The 'parameters.name' resource named '{call.part('name')} ({call.part('type')})' does not exist."
    return _refused(404, "notFound", message, "NOT_FOUND")


def _refused(status: int, reason: str, message: str, code_name: str | None = None) -> CloudApiError:
    return CloudApiError(status, reason, message, code_name)


_ZONE: Final = "/projects/{project}/managedZones/{zone}"
_RECORD_SET: Final = f"{_ZONE}/rrsets/{{name}}/{{type}}"

_OPERATION_ID: Final = frozenset({"clientOperationId"})
_PAGES: Final = frozenset({"maxResults", "pageToken"})

DNS_ROUTES: Final[tuple[Route[CatalogueServices], ...]] = (
    Route("POST", f"{_ZONE}/changes", create_change, _OPERATION_ID),
    Route("GET", f"{_ZONE}/changes", list_changes, _PAGES | {"sortBy", "sortOrder"}),
    Route("GET", f"{_ZONE}/changes/{{change}}", get_change, _OPERATION_ID),
    Route("GET", f"{_ZONE}/rrsets", list_records, _PAGES | {"name", "type"}),
    Route("POST", f"{_ZONE}/rrsets", create_record, _OPERATION_ID),
    Route("GET", _RECORD_SET, get_record, _OPERATION_ID),
    Route("PATCH", _RECORD_SET, patch_record, _OPERATION_ID),
    Route("DELETE", _RECORD_SET, delete_record, _OPERATION_ID),
    Route("DELETE", _ZONE, delete_zone, _OPERATION_ID),
)
