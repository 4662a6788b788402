"""Request bodies for a StorageBucket: a new bucket, or a patch of the members that change."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from setpoint.core.overlay import Declared, rule_at
from setpoint.core.plan import PlannedWrite
from setpoint.core.schema.policy import Rule
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent
from setpoint.kinds.gcp.storage_bucket.declared import request_rule
from setpoint.kinds.gcp.storage_bucket.effective import LOCKED

# A tree of `StorageBucketTree`, or a part of one.
_Spec: TypeAlias = Mapping[str, Any]

_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
# The API's member for a field of the spec, where the names differ.
_MEMBER: Final = {
    "uniformBucketLevelAccess": "iamConfiguration",
    "publicAccessPrevention": "iamConfiguration",
    "lifecycleRule": "lifecycle",
    "requesterPays": "billing",
}
# Rules that decide a value without the live object.
_WITHOUT_LIVE: Final = (Rule.SPEC, Rule.PRUNED, Rule.DEFAULT)
# Members that a patch merges: parts to remove have to be named.
_MERGED_MEMBERS: Final = ("labels", "logging", "website", "ipFilter")


def insert_body(intent: Intent, wanted: JsonObject, name: str) -> dict[str, Json]:
    """The body of an insert: `wanted` as a whole, with the name. The lock of a retention policy follows."""
    spec = _spec(wanted)
    sent = {_MEMBER.get(field, field) for field in spec}
    members = _members(wanted, (*sent, "labels"))
    members |= {field: spec[field] for field in ("location", "customPlacementConfig") if field in spec}
    # In the author's spelling: the service puts the place in upper case, and corrects what Autoclass does not allow.
    written = {field: intent.resource.spec.get(field) for field in ("location", "storageClass")}
    return {**members, **{field: value for field, value in written.items() if value}, "name": name}


def patch_body(intent: Intent, wanted: JsonObject, write: PlannedWrite, view: JsonObject) -> dict[str, Json]:
    """The body of a patch: every changed member as a whole, and null for removed ones."""
    changed = _changed_members(write)
    before, after = _members(view, changed), _members(wanted, changed)
    body: dict[str, Json] = {member: _patched(member, before, after) for member in changed}
    if body.get("autoclass"):
        body["autoclass"] = _patched_autoclass(body["autoclass"], intent, _spec(view))
    return body


def depends_on_live(declared: Declared, wanted: JsonObject, write: PlannedWrite) -> bool:
    """Whether the patch repeats observed values: it is then valid for that metageneration of the bucket only.

    Declared values and defaults do not depend on the live bucket. `declared` is fitted to the live bucket.
    """
    # The lock has a request of its own.
    repeated = (path for path in _sent_leaves(wanted, _changed_members(write)) if path != LOCKED)
    return any(rule_at(declared, path) not in _WITHOUT_LIVE for path in repeated)


def _sent_leaves(wanted: JsonObject, members: Collection[str]) -> Iterator[Path]:
    """The leaves of `wanted` in these members of the API."""
    for part, fields in wanted.items():
        assert isinstance(fields, Mapping)
        sent = {name: value for name, value in fields.items() if _MEMBER.get(name, name) in members}
        yield from _leaves(sent, Path((part,)))


def _leaves(tree: JsonObject, at: Path) -> Iterator[Path]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, at / name)
        else:
            yield at / name


def _spec(tree: JsonObject) -> _Spec:
    spec = tree["spec"]
    assert isinstance(spec, Mapping)
    return spec


def _changed_members(write: PlannedWrite) -> tuple[str, ...]:
    """The API's members that the write changes."""
    return tuple(dict.fromkeys(_member_of(change.path) for change in write.changes))


def _member_of(path: Path) -> str:
    name = str(path.steps[1])
    return _MEMBER.get(name, name)


def _patched(member: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> Json:
    was, now = before.get(member), after.get(member)
    if member == "encryption" and now is None and isinstance(was, Mapping):
        # The member also holds which keys are allowed: remove only the modelled parts.
        return dict.fromkeys(was)
    if member in _MERGED_MEMBERS and isinstance(was, Mapping) and isinstance(now, Mapping):
        return {**now, **{part: None for part in was if part not in now}}
    return now


def _patched_autoclass(autoclass: Json, intent: Intent, view: _Spec) -> Json:
    """Autoclass in a patch: turned off, it is sent with its former terminal class."""
    declared = _spec(intent.declared.tree)
    if not (declared.get("autoclass") and same(autoclass, {"enabled": False})):
        return _without_default_terminal(autoclass, declared, view)
    name = "terminalStorageClass"
    written: Any = intent.resource.spec["autoclass"]
    terminal = written.get(name) or view.get("autoclass", {}).get(name)
    return {"enabled": False, name: terminal} if terminal else autoclass


def _without_default_terminal(autoclass: Json, declared: _Spec, view: _Spec) -> Json:
    """Autoclass without a terminal class that is only the default."""
    name = "terminalStorageClass"
    assert isinstance(autoclass, Mapping)
    if name in (declared.get("autoclass") or {}) or name in (view.get("autoclass") or {}):
        return autoclass
    return {part: value for part, value in autoclass.items() if part != name}


# --- From fields of the spec to members of the API -------------------------------------------------------------------


def _members(tree: JsonObject, names: Collection[str]) -> dict[str, Json]:
    """Those members of these names that the tree sets, in the terms of the API."""
    spec = _spec(tree)
    found = {member: build(spec) for member, build in _BUILDERS.items() if member in names}
    members: dict[str, Json] = {member: one for member, one in found.items() if not isinstance(one, Missing)}
    return {**members, "labels": _labels(tree)} if "labels" in names else members


def _labels(tree: JsonObject) -> Json:
    metadata = tree.get("metadata", {})
    assert isinstance(metadata, Mapping)
    return metadata.get("labels", {})


def _iam(spec: _Spec) -> Json:
    prevention = spec.get("publicAccessPrevention")
    uniform = spec.get("uniformBucketLevelAccess")
    members: dict[str, Json] = {} if uniform is None else {"uniformBucketLevelAccess": {"enabled": uniform}}
    return {**members, "publicAccessPrevention": prevention} if prevention else members


def _autoclass(spec: _Spec) -> Json | Missing:
    autoclass = spec.get("autoclass")
    if not autoclass:
        return MISSING
    return dict(autoclass) if autoclass.get("enabled") else {"enabled": False}


def _ip_filter(spec: _Spec) -> Json | Missing:
    declared = spec.get("ipFilter")
    if not declared:
        return MISSING
    sources = [
        {
            "network": _network_link(source["networkRef"]["external"]),
            "allowedIpCidrRanges": source.get("allowedIpCidrRanges", []),
        }
        for source in declared.get("vpcNetworkSources") or ()
    ]
    flags = {flag: bool(declared.get(flag)) for flag in ("allowCrossOrgVpcs", "allowAllServiceAgentAccess")}
    public = {name: declared[name] for name in ("publicNetworkSource",) if declared.get(name)}
    return {"mode": declared.get("mode", "Disabled"), **public, "vpcNetworkSources": sources, **flags}


def _network_link(network: str) -> str:
    """A network by its full link, as Config Connector sends it."""
    return f"{_COMPUTE}{network}" if network.startswith("projects/") else network


def _text_in(part: str, field: str) -> Callable[[_Spec], Json | Missing]:
    """A member with one 64-bit integer, which the API takes as text."""

    def build(spec: _Spec) -> Json | Missing:
        number = (spec.get(part) or {}).get(field)
        return MISSING if number is None else {field: str(number)}

    return build


def _same_member(field: str) -> Callable[[_Spec], Json | Missing]:
    """A field whose member has the same name and form; missing when it is empty."""

    def build(spec: _Spec) -> Json | Missing:
        value: Json = spec.get(field)
        return MISSING if value is None or value in ({}, []) else value

    return build


def _key(spec: _Spec) -> Json | Missing:
    encryption = spec.get("encryption")
    return {"defaultKmsKeyName": encryption["kmsKeyRef"]["external"]} if encryption else MISSING


def _billing(spec: _Spec) -> Json | Missing:
    pays = spec.get("requesterPays")
    return MISSING if pays is None else {"requesterPays": pays}


_BUILDERS: Final[Mapping[str, Callable[[_Spec], Json | Missing]]] = {
    "autoclass": _autoclass,
    "billing": _billing,
    "cors": _same_member("cors"),
    "defaultEventBasedHold": _same_member("defaultEventBasedHold"),
    "encryption": _key,
    "iamConfiguration": _iam,
    "ipFilter": _ip_filter,
    "lifecycle": lambda spec: {"rule": [request_rule(rule) for rule in spec.get("lifecycleRule") or ()]},
    "logging": _same_member("logging"),
    "retentionPolicy": _text_in("retentionPolicy", "retentionPeriod"),
    "softDeletePolicy": _text_in("softDeletePolicy", "retentionDurationSeconds"),
    "storageClass": _same_member("storageClass"),
    "versioning": _same_member("versioning"),
    "website": _same_member("website"),
}
