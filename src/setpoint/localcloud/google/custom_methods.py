"""Methods that change one part of an object: `setLabels`, `setTags`, `resize`, `enable`, `addRule` and their like."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from setpoint.localcloud import api_errors
from setpoint.localcloud.google import api_words
from setpoint.localcloud.google.members import ApiMember
from setpoint.localcloud.google.objects import refuse_stale, refuse_while_pending, store_changed
from setpoint.localcloud.google.outputs import ObjectAddress
from setpoint.localcloud.google.reads import CatalogueServices, CollectionCall, find
from setpoint.localcloud.google.validation import invalid_argument, refuse_immutable_changes, validated
from setpoint.localcloud.schema import JsonBody, NullMeaning, merge_patch, with_member

_FINGERPRINTS: Final = ("fingerprint", "labelFingerprint")
_STATES: Final = {
    "enable": "ENABLED",
    "disable": "DISABLED",
    "start": "RUNNING",
    "stop": "TERMINATED",
    "suspend": "SUSPENDED",
}
_STOPPED: Final = ("TERMINATED", "STOPPED")
# The members of requests that are named otherwise in the object.
_RENAMED: Final = {"size": "targetSize", "target": "target"}
# Members of requests that name the object once more.
_OF_REQUESTS: Final = ("name", "projectId", "zone", "clusterId", "nodePoolId")


def custom_method(services: CatalogueServices, call: CollectionCall) -> JsonBody:
    """Carries out a method that is not one of a collection's own."""
    address = _address(call)
    change = _change_of(call)
    if change is None:
        raise api_errors.no_such_method(call.facts.verb, f"{call.facts.path} ({call.method})")
    found = find(services, address)
    if call.facts.verb == "GET":
        return change(call, found.body)
    refuse_while_pending(found, address)
    refuse_stale(call, found, {})
    _refuse_stale_part(call, found.body)
    if call.facts.stopped and found.body.get("status") not in _STOPPED:
        raise invalid_argument(f"Invalid state of {address.name}: {call.method} needs a stopped instance.")
    after = change(call, found.body)
    refuse_immutable_changes(call.collection.shape, _without_set(call, found.body), _without_set(call, after))
    return store_changed(services, call, address, after, verb=call.method)


PartChange = Callable[[CollectionCall, JsonBody], JsonBody]


def _change_of(call: CollectionCall) -> PartChange | None:
    name = call.method
    special = _SPECIAL.get(name)
    if special is not None:
        return special
    prefixes: Mapping[str, PartChange] = {
        "set": _set,
        "update": _set,
        "expand": _set,
        "upgrade": _set,
        "add": _add,
        "remove": _remove,
        "resize": _set,
    }
    return next((change for prefix, change in prefixes.items() if name.startswith(prefix)), None)


def _address(call: CollectionCall) -> ObjectAddress:
    # Compute's methods are a segment after the object; those of newer APIs follow a colon.
    segments = call.path.segments
    if segments[-1] == call.method:
        segments = segments[:-1]
    # Older ones of Compute leave `global` out.
    if call.collection.api == "compute" and len(segments) == 4 and segments[2] != "global":
        segments = (*segments[:2], "global", *segments[2:])
    return call.address("/".join(segments))


def _body(call: CollectionCall) -> JsonBody:
    if call.body is None:
        return {}
    if not isinstance(call.body, dict):
        raise api_errors.bad_json("The body is not an object.")
    return call.body


def _part(call: CollectionCall) -> str:
    """The member that a method is named after: `setLabels` → `labels`."""
    if call.facts.field:
        return call.facts.field
    bare = call.method
    for prefix in ("set", "add", "remove"):
        bare = bare.removeprefix(prefix)
    return bare[:1].lower() + bare[1:]


def _refuse_stale_part(call: CollectionCall, live: JsonBody) -> None:
    body = _body(call)
    part = live.get(_part(call))
    if "abel" in call.method and "labelFingerprint" in live and call.method.startswith("set"):
        if body.get("labelFingerprint") != live["labelFingerprint"]:
            raise api_words.stale(call.collection, "labelFingerprint")
    elif isinstance(part, dict) and "fingerprint" in part:
        if body.get("fingerprint") != part["fingerprint"]:
            raise api_words.stale(call.collection, "fingerprint")
    elif body.get("fingerprint") not in (None, live.get("fingerprint")):
        raise api_words.stale(call.collection, "fingerprint")


def _sent(call: CollectionCall) -> JsonBody:
    """What a method is to set, from its body and its query, by the member of the object."""
    body = {name: value for name, value in _body(call).items() if name not in _FINGERPRINTS}
    for name, text in call.query.items():
        if name in call.facts.query and name not in ("requestId", "validateOnly", "etag"):
            body[name] = {"true": True, "false": False}.get(text, text)
    return {_RENAMED.get(name, name) if name not in _members(call) else name: value for name, value in body.items()}


def _members(call: CollectionCall) -> Mapping[str, ApiMember]:
    return call.collection.shape.members


def _set(call: CollectionCall, live: JsonBody) -> JsonBody:
    """The object with the members that the request names; or with the request as the member it is named after."""
    sent, members, part = _sent(call), _members(call), _part(call)
    if call.facts.sends_as:
        changed = _named_in_object(call, live, sent)
    elif all(name in members for name in sent) and not call.facts.field:
        changed = sent
    elif part in members:
        changed = {part: sent}
    else:
        unknown = next(name for name in sent if name not in members)
        raise api_errors.unknown_name(unknown, "")
    changed = validated(_open_for(call, changed), changed, NullMeaning.REMOVE)
    _refuse_shrinking(call, live, changed)
    if call.facts.verb == "PATCH" or call.facts.sends_as:
        return merge_patch(live, changed)
    return {name: value for name, value in {**live, **changed}.items() if value is not None}


def _named_in_object(call: CollectionCall, live: JsonBody, sent: JsonBody) -> JsonBody:
    """What a request with names of its own sets, by the names of the object; an element of a list keeps the rest."""
    paths = {name: path for path, name in call.facts.sends_as.items()}
    tree: JsonBody = {}
    for name, value in sent.items():
        if name in _OF_REQUESTS and name not in paths:
            continue
        if name not in paths:
            raise api_errors.unknown_name(name, "")
        outer, _, inner = paths[name].partition(".0.")
        if not inner:
            tree = with_member(tree, outer, value)
            continue
        first, *others = tree.get(outer) or live.get(outer) or [{}]
        tree = {**tree, outer: [{**first, inner: value}, *others]}
    return tree


def _open_for(call: CollectionCall, changed: JsonBody) -> ApiMember:
    """The shape of the object, in which what a method is there to set can be set."""
    shape = call.collection.shape
    opened = {name: replace(one, output_only=False) for name, one in shape.members.items() if name in changed}
    return replace(shape, members={**shape.members, **opened})


def _refuse_shrinking(call: CollectionCall, live: JsonBody, changed: JsonBody) -> None:
    if call.method == "resize" and "sizeGb" in changed:
        before, after = int(live.get("sizeGb", 0)), int(changed["sizeGb"])
        if after < before:
            raise invalid_argument(f"Requested disk size cannot be smaller than current size ({after} < {before}).")


def _add(call: CollectionCall, live: JsonBody) -> JsonBody:
    """The object with more elements in its lists."""
    changed = validated(call.collection.shape, _sent(call))
    for name, value in changed.items():
        present = live.get(name, [])
        added = [one for one in value if one not in present] if isinstance(value, list) else []
        live = {**live, name: [*present, *added]}
    return live


def _remove(call: CollectionCall, live: JsonBody) -> JsonBody:
    """The object with fewer elements in its lists."""
    changed = validated(call.collection.shape, _sent(call))
    for name, value in changed.items():
        gone = value if isinstance(value, list) else [value]
        live = {**live, name: [one for one in live.get(name, []) if one not in gone]}
    return live


def _switch(call: CollectionCall, live: JsonBody) -> JsonBody:
    """The object enabled or disabled, started or stopped."""
    if "disabled" in _members(call):
        return {**live, "disabled": call.method == "disable"}
    name = "status" if "status" in live else "state"
    return {**live, name: _STATES[call.method]}


# --- Rules of policies, by priority -----------------------------------------------------------------------------------


def _priority(call: CollectionCall) -> int:
    text = call.query.get("priority") or str(_body(call).get("priority", ""))
    if not text.removeprefix("-").isdecimal():
        raise api_errors.missing_parameter("priority")
    return int(text)


def _rule(call: CollectionCall, live: JsonBody) -> JsonBody:
    priority = _priority(call)
    for rule in live.get("rules", []):
        if rule.get("priority") == priority:
            return dict(rule)
    raise invalid_argument(f"The rule with priority {priority} does not exist.")


def _valid_rule(call: CollectionCall) -> JsonBody:
    rules = validated(call.collection.shape, {"rules": [_body(call)]})
    return dict(rules["rules"][0])


def _other_rules(call: CollectionCall, live: JsonBody) -> list[JsonBody]:
    priority = _priority(call)
    return [rule for rule in live.get("rules", []) if rule.get("priority") != priority]


def _add_rule(call: CollectionCall, live: JsonBody) -> JsonBody:
    others = _other_rules(call, live)
    if len(others) != len(live.get("rules", [])):
        raise invalid_argument("Cannot have rules with the same priorities.")
    return {**live, "rules": [*others, _valid_rule(call)]}


def _patch_rule(call: CollectionCall, live: JsonBody) -> JsonBody:
    patched = {**_rule(call, live), **_valid_rule(call)}
    return {**live, "rules": [*_other_rules(call, live), patched]}


def _remove_rule(call: CollectionCall, live: JsonBody) -> JsonBody:
    _rule(call, live)
    return {**live, "rules": _other_rules(call, live)}


_SPECIAL: Final[Mapping[str, PartChange]] = {
    "enable": _switch,
    "disable": _switch,
    "start": _switch,
    "stop": _switch,
    "suspend": _switch,
    "getRule": _rule,
    "addRule": _add_rule,
    "patchRule": _patch_rule,
    "removeRule": _remove_rule,
}


def _without_set(call: CollectionCall, body: JsonBody) -> JsonBody:
    """An object without what the method is there to change: a part may be fixed for `patch` and not for its method."""
    changed = {*_sent(call), _part(call), *(path.split(".")[0] for path in call.facts.sends_as)}
    return {name: value for name, value in body.items() if name not in changed}
