"""The methods that every collection has: create, get, list, patch, update and delete."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from setpoint.core.values.canonical import same
from setpoint.localcloud import api_errors
from setpoint.localcloud.google import api_words, operations
from setpoint.localcloud.google.collections import ApiCollection
from setpoint.localcloud.google.operations import CatalogueObject, ObjectChange
from setpoint.localcloud.google.outputs import ObjectAddress, created, id_in, numeric_id, touched
from setpoint.localcloud.google.reads import (
    CatalogueServices,
    CollectionCall,
    address_of,
    check_parent,
    check_references,
    find,
    is_deleted,
)
from setpoint.localcloud.google.service_facts import filled
from setpoint.localcloud.google.validation import (
    invalid_argument,
    mask_paths,
    masked,
    refuse_immutable_changes,
    require,
    returned,
    validated,
    with_defaults,
)
from setpoint.localcloud.schema import JsonBody, NullMeaning, member, merge_patch, with_member, without_member

_COMPUTE_ID: Final = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_MASKS: Final = ("updateMask", "fieldMask", "mask.fieldPaths")
# Members that are unique together, of collections whose ids the service makes.
_UNIQUE: Final[Mapping[str, Sequence[str]]] = {
    "cloudresourcemanager/folders": ("parent", "displayName"),
    "cloudresourcemanager/tagKeys": ("parent", "shortName"),
    "cloudresourcemanager/tagValues": ("parent", "shortName"),
}
_MADE_BELOW: Final = {"container/clusters": "nodePools/default-pool"}
# Updates that replace the object, by a PATCH, too.
_WHOLE: Final = ("put", "patch-whole")
_FORCE: Final = ("force", "deleteContents")
# Ids that the client gives in the body are full names here, and may be left to the service.
_GENERATED_NAMES: Final = "name"


# --- Create -----------------------------------------------------------------------------------------------------------


def create_object(services: CatalogueServices, call: CollectionCall) -> JsonBody:
    """Creates an object; returns it, or the operation that creates it."""
    sent, mask_free = _unwrapped(call)
    shape = call.collection.shape
    # What it is made of stands beside the object, and is shown in it.
    body = validated(shape, {**sent, **{name: one for name, one in mask_free.items() if name in shape.members}})
    require(shape, body)
    address = _new_address(services, call, sent, mask_free)
    check_parent(services, address)
    if address.key in services.state.objects:
        raise api_words.already_exists(address)
    _check_unique(services, call, address, body)
    check_references(services, address, body)
    return store_new(services, call, address, body)


def _check_unique(services: CatalogueServices, call: CollectionCall, address: ObjectAddress, body: JsonBody) -> None:
    """Refuses a second object of a parent with the same name for people, where the service does so."""
    unique = _UNIQUE.get(f"{call.collection.api}/{call.collection.plural}")
    if unique is None:
        return
    siblings = f"{address.key.rpartition('/')[0]}/"
    for key, one in services.state.objects.items():
        is_sibling = key.startswith(siblings) and not is_deleted(call.collection, one.body)
        if is_sibling and all(one.body.get(name) == body.get(name) for name in unique):
            raise api_words.already_exists(ObjectAddress(call.collection, key.partition("/")[2]))


def store_new(services: CatalogueServices, call: CollectionCall, address: ObjectAddress, body: JsonBody) -> JsonBody:
    """Stores a new object with all that the service adds, and returns what a creation returns."""
    services.state.count += 1
    serial = services.state.count
    body = filled(address, with_defaults(call.collection.shape, body), call.now)
    full = created(address, body, call.now, serial)
    full = returned(call.collection.shape, services.faults.rewritten(full, call.collection.kinds))
    if call.query.get("validateOnly") == "true":
        return full
    services.state.objects[address.key] = CatalogueObject(full, serial, hidden={"asked": dict(call.query)})
    _store_below(services, address, full)
    change = ObjectChange("create", full, full, response_type(call.collection))
    return carry_out(services, address, change, now=call.now, style=call.collection.row.operations.get("create"))


def _store_below(services: CatalogueServices, address: ObjectAddress, body: JsonBody) -> None:
    """Stores what the service makes in a new object: the first node pool of a cluster that has any."""
    below = _MADE_BELOW.get(f"{address.collection.api}/{address.collection.plural}")
    if below is not None and body.get("autopilot") is None:
        made = address_of(address.collection.api, f"{address.name}/{below}")
        services.state.objects[made.key] = CatalogueObject({"name": made.id, "status": "RUNNING"})


def carry_out(
    services: CatalogueServices, address: ObjectAddress, change: ObjectChange, *, now: datetime, style: str | None
) -> JsonBody:
    """Carries out a change at once, or starts the operation that does; returns the object, or the operation."""
    found = services.state.objects[address.key]
    if style is None:
        if change.after is None:
            operations.remove(services.state, address.key)
            return {}
        found.body = change.after
        found.hidden = found.hidden if change.hidden is None else change.hidden
        return change.response if change.response is not None else change.after
    operation = operations.start(services.state, style, address, change, now=now, seconds=services.operation_seconds)
    operations.let_fail(operation, services.faults)
    found.pending = operation.key
    operations.finish_due(services.state, now)
    return operations.operation_view(operation)


def response_type(collection: ApiCollection) -> str:
    """The type of a collection's objects, as operations name it."""
    return collection.singular[:1].upper() + collection.singular[1:]


def _unwrapped(call: CollectionCall) -> tuple[JsonBody, JsonBody]:
    """The object in a request's body, and what stands beside it."""
    body = call.body if call.body is not None else {}
    if not isinstance(body, dict):
        raise api_errors.bad_json("The body is not an object.")
    wrap = call.facts.wrap
    if not wrap:
        return body, {}
    beside = {name: value for name, value in body.items() if name != wrap}
    own = (call.facts.mask, call.collection.row.id.name, "parent", "name", "validateOnly", "requestId")
    allowed = {*own, *call.facts.sends}
    for name in beside:
        if name not in allowed:
            raise api_errors.unknown_name(name, "")
    inner = body.get(wrap, {})
    if not isinstance(inner, dict):
        raise api_errors.wrong_value(wrap, "object", inner)
    return inner, beside


def _new_address(services: CatalogueServices, call: CollectionCall, sent: JsonBody, beside: JsonBody) -> ObjectAddress:
    id_ = call.collection.row.id
    parent = call.path.name
    match id_.where:
        case "url":
            return _checked(call.address(), parent.rpartition("/")[0])
        case "query":
            given = id_in(beside, id_.name) if id_.name in call.facts.sends else call.query.get(id_.name)
            if not given:
                raise api_errors.missing_parameter(id_.name)
            given = given.removeprefix(id_.value.partition("{id}")[0])
        case "body":
            given = _id_in_body(call, sent, beside)
        case "fields":
            # The one object of its collection.
            given = call.collection.row.own_id or None
        case _:
            given = None
    if given is None:
        given = numeric_id(parent, services.state.count)
    full = given if given.startswith(f"{parent}/") else f"{parent}/{given}"
    return _checked(call.address(full), parent)


def _id_in_body(call: CollectionCall, sent: JsonBody, beside: JsonBody) -> str | None:
    path = call.collection.row.id.name
    given = id_in(beside, path) or id_in(sent, path)
    if given is None and (path != _GENERATED_NAMES or call.collection.has_short_names):
        raise invalid_argument(f"Required field '{path}' not specified.")
    form = call.collection.row.own_id
    return form.format(id=given, project=call.address().project) if given is not None and form else given


def _checked(address: ObjectAddress, parent: str) -> ObjectAddress:
    id_, row = address.name.removeprefix(f"{parent}/"), address.collection.row
    is_valid = bool(id_) and len(id_) <= 255 and "/" not in id_
    pattern = _COMPUTE_ID if address.collection.api == "compute" else row.id_pattern
    # What follows an @ is the service's.
    sent = id_.partition("@")[0] if row.own_id else id_
    if not is_valid or (pattern and re.fullmatch(pattern, sent) is None):
        raise api_words.invalid_id(address)
    return address


# --- Change -----------------------------------------------------------------------------------------------------------


def update_object(services: CatalogueServices, call: CollectionCall) -> JsonBody:
    """Changes an object: the members of the mask, of the merge patch, or all of them, as the method does."""
    sent, beside = _unwrapped(call)
    address = _updated_address(call, sent)
    if call.query.get("allowMissing") == "true" and address.key not in services.state.objects:
        body = validated(call.collection.shape, sent)
        require(call.collection.shape, body)
        check_parent(services, address)
        return store_new(services, call, address, body)
    found = find(services, address)
    refuse_while_pending(found, address)
    refuse_stale(call, found, sent)
    after = _after_update(call, found.body, sent, beside)
    refuse_immutable_changes(call.collection.shape, found.body, after)
    check_references(services, address, after)
    return store_changed(services, call, address, after, verb="update")


def _updated_address(call: CollectionCall, sent: JsonBody) -> ObjectAddress:
    # Some methods have no object in their path: its name is in the query or in the body.
    if len(call.path.segments) < len(call.collection.templates[0]) or call.path.segments[-1] == call.collection.plural:
        given = call.query.get(call.collection.singular) or id_in(sent, "name") or ""
        return call.address(f"{call.path.name}/{given}")
    return call.address()


def _after_update(call: CollectionCall, live: JsonBody, sent: JsonBody, beside: JsonBody) -> JsonBody:
    shape, text = call.collection.shape, _mask(call, beside)
    if text is not None:
        body = validated(shape, sent)
        paths = mask_paths(shape, text) if text else [(name,) for name in body]
        return masked(live, body, [path for path in paths if not shape.members[path[0]].output_only])
    if call.facts.verb == "PATCH" and call.collection.row.update_style not in _WHOLE:
        body = validated(shape, sent, NullMeaning.REMOVE)
        return merge_patch(live, body)
    if call.facts.sends_as:
        return _after_request(call, live, sent)
    body = validated(shape, sent)
    require(shape, body)
    kept = {name: value for name, value in live.items() if _is_kept(call, name)}
    return with_defaults(shape, {**kept, **body})


def _after_request(call: CollectionCall, live: JsonBody, sent: JsonBody) -> JsonBody:
    """The object after an update by a request of its own, whose members are not named as the object's."""
    paths = {name: path for path, name in call.facts.sends_as.items()}
    known = {name.partition(".")[0] for name in paths}
    # A null is a member that is not there.
    named = [name for name in sent if name not in ("etag", "name") and sent[name] is not None]
    for name in named:
        if name not in known:
            raise api_errors.unknown_name(name, call.facts.wrap)
    if call.facts.wrap and len(named) != 1:
        raise invalid_argument("Must specify one field to update.")
    given = {path: member(sent, name) for name, path in paths.items() if name.partition(".")[0] in named}
    after = live
    for path, value in given.items():
        valid = validated(call.collection.shape, with_member({}, path, value))
        found = member(valid, path)
        after = without_member(after, path) if found is None else with_member(after, path, found)
    return after


def _is_kept(call: CollectionCall, name: str) -> bool:
    """Whether a PUT that lacks a member leaves it as it is: what the service sets, and what cannot change."""
    member = call.collection.shape.members.get(name)
    return member is None or member.output_only or member.immutable


def _mask(call: CollectionCall, beside: JsonBody) -> str | None:
    """The mask, empty when none was given; None for a method that has no mask."""
    if call.facts.mask:
        given = beside.get(call.facts.mask)
        if not isinstance(given, str) or not given:
            raise invalid_argument(f"The {call.facts.mask} in the request must be set.")
        return given
    names = [name for name in _MASKS if name in call.facts.query]
    if not names:
        return None
    return next((call.query[name] for name in names if call.query.get(name)), "")


def refuse_while_pending(found: CatalogueObject, address: ObjectAddress) -> None:
    """Refuses a write while an operation changes the object."""
    if found.pending:
        raise api_words.in_progress(address)


def refuse_stale(call: CollectionCall, found: CatalogueObject, sent: Mapping[str, object]) -> None:
    """Refuses a write whose etag or fingerprint is not the current one."""
    given = {name: sent[name] for name in ("etag", "fingerprint") if name in found.body and sent.get(name)}
    if call.query.get("etag"):
        given["etag"] = call.query["etag"]
    if call.if_match and "etag" in found.body:
        given["etag"] = call.if_match
    for name, value in given.items():
        if value not in ("*", found.body[name]):
            raise api_words.stale(call.collection, name)


def store_changed(
    services: CatalogueServices, call: CollectionCall, address: ObjectAddress, after: JsonBody, *, verb: str
) -> JsonBody:
    """Stores an object as it is after a write, and returns what a write returns."""
    shape = call.collection.shape
    found = find(services, address)
    after = returned(shape, services.faults.rewritten(after, call.collection.kinds))
    if call.query.get("validateOnly") == "true":
        return after
    if not same(after, found.body):
        services.state.count += 1
        found.serial = services.state.count
        after = touched(address, after, call.now, found.serial)
    services.state.objects[address.key] = found
    style = call.collection.row.operations.get("update") if verb == "update" else _custom_style(call)
    change = ObjectChange(verb, after, after, response_type(call.collection))
    return carry_out(services, address, change, now=call.now, style=style)


def _custom_style(call: CollectionCall) -> str | None:
    if call.collection.api in ("compute", "container"):
        return call.collection.api
    return call.collection.row.operations.get("update")


# --- Delete -----------------------------------------------------------------------------------------------------------


def delete_object(services: CatalogueServices, call: CollectionCall) -> JsonBody:
    """Removes an object; returns nothing, or the operation that does."""
    address = call.address()
    found = services.state.objects.get(address.key)
    if found is None:
        if call.query.get("allowMissing") == "true":
            return {}
        raise api_words.not_found(address)
    refuse_while_pending(found, address)
    refuse_stale(call, found, {})
    below = [key for key in services.state.objects if key.startswith(f"{address.key}/")]
    if below and _asks_for_force(call.facts.query) and not any(call.query.get(name) == "true" for name in _FORCE):
        raise api_words.in_use(address, below[0].partition("/")[2])
    if is_deleted(call.collection, found.body):
        raise invalid_argument(f"{address.name} was deleted already.")
    change = _deletion(call, found)
    return carry_out(services, address, change, now=call.now, style=call.collection.row.operations.get("delete"))


def _deletion(call: CollectionCall, found: CatalogueObject) -> ObjectChange:
    """The end of an object; one that the service keeps for a time says that it was deleted."""
    marks = {name: values[0] for name, values in call.collection.row.absent.items()}
    return ObjectChange("delete", {**found.body, **marks} if marks else None)


def _asks_for_force(parameters: Sequence[str]) -> bool:
    return any(name in parameters for name in _FORCE)
