"""Request bodies for a StorageBucket: a new bucket, or a patch of the members that change."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from setpoint.core.overlay import Declared, rule_at
from setpoint.core.plan import PlannedWrite
from setpoint.core.schema.policy import Rule
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent
from setpoint.kinds.gcp.storage_bucket.declared import LOCKED, request_rule
from setpoint.kinds.gcp.storage_bucket.spec import LOCATION, STORAGE_CLASS

# A tree of StorageBucketTree, or a part of one.
_Spec: TypeAlias = Mapping[str, Any]

_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
# Sent with every new bucket, said or not.
_ALWAYS: Final = ("storageClass", "uniformBucketLevelAccess", "lifecycleRule", "location")
# Which member of the bucket a field of the spec is in, where the names differ.
_MEMBER: Final = {
    "uniformBucketLevelAccess": "iamConfiguration",
    "publicAccessPrevention": "iamConfiguration",
    "lifecycleRule": "lifecycle",
    "requesterPays": "billing",
}
# Left out of a new bucket: it starts like this.
_INITIAL: Final[Mapping[str, Json]] = {
    "autoclass": {"enabled": False},
    "billing": {"requesterPays": False},
    "defaultEventBasedHold": False,
}
# What decides without a look.
_WITHOUT_LIVE: Final = (Rule.SPEC, Rule.PRUNED, Rule.DEFAULT)
# Members whose parts stay as they are unless a patch says otherwise: what is to go has to be named.
_MERGED_MEMBERS: Final = ("labels", "logging", "website", "ipFilter")


def insert_body(intent: Intent, wanted: JsonObject, name: str) -> dict[str, Json]:
    """The body of an insert: what the author says, and what is always said."""
    said, spec = _spec(intent.declared.tree), _spec(wanted)
    sent = {field: value for field, value in spec.items() if field in _ALWAYS or said.get(field) is not None}
    members = {**_members({"spec": sent, "metadata": wanted["metadata"]}), "name": name}
    # Where everything unspecified is left to the service, nothing but this has a value yet.
    members["location"] = spec.get("location", LOCATION)
    # Taken as the author wrote it: the service corrects what Autoclass does not allow.
    members["storageClass"] = intent.resource.spec.get("storageClass") or spec.get("storageClass", STORAGE_CLASS)
    if "customPlacementConfig" in spec:
        members["customPlacementConfig"] = spec["customPlacementConfig"]
    if "autoclass" in members:
        members["autoclass"] = _without_default_terminal(members["autoclass"], said, {})
    return {member: value for member, value in members.items() if not same([value], [_INITIAL.get(member)])}


def patch_body(intent: Intent, wanted: JsonObject, write: PlannedWrite, view: JsonObject) -> dict[str, Json]:
    """The body of a patch: every member that changes, whole; null for what is removed."""
    before, after = _members(view), _members(wanted)
    body: dict[str, Json] = {member: _patched(member, before, after) for member in _changed_members(write)}
    if body.get("autoclass"):
        body["autoclass"] = _patched_autoclass(body["autoclass"], intent, _spec(view))
    return body


def depends_on_live(declared: Declared, wanted: JsonObject, write: PlannedWrite) -> bool:
    """Whether the patch says something only because it was seen: it is then good for that state of the bucket alone.

    What the author wrote is said whatever was seen, and what silence comes to, too. `declared` is fitted.
    """
    touched = _changed_members(write)
    # The lock has an order of its own.
    said_again = (path for path in _leaves(wanted, Path()) if _member_of(path) in touched and path != LOCKED)
    return any(rule_at(declared, path) not in _WITHOUT_LIVE for path in said_again)


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
    """The members that the changes are in."""
    return tuple(dict.fromkeys(_member_of(change.path) for change in write.changes))


def _member_of(path: Path) -> str:
    name = str(path.steps[1])
    return _MEMBER.get(name, name)


def _patched(member: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> Json:
    was, now = before.get(member), after.get(member)
    if member == "encryption" and now is None and isinstance(was, Mapping):
        # Which keys a bucket may be encrypted with at all stands in it, too.
        return dict.fromkeys(was)
    if member in _MERGED_MEMBERS and isinstance(was, Mapping) and isinstance(now, Mapping):
        return {**now, **{part: None for part in was if part not in now}}
    return now


def _patched_autoclass(autoclass: Json, intent: Intent, view: _Spec) -> Json:
    """Autoclass as it is patched: one that the author turns off is sent with its terminal class, as it was."""
    said = _spec(intent.declared.tree)
    if not (said.get("autoclass") and same(autoclass, {"enabled": False})):
        return _without_default_terminal(autoclass, said, view)
    name = "terminalStorageClass"
    written: Any = intent.resource.spec["autoclass"]
    terminal = written.get(name) or view.get("autoclass", {}).get(name)
    return {"enabled": False, name: terminal} if terminal else autoclass


def _without_default_terminal(autoclass: Json, said: _Spec, view: _Spec) -> Json:
    """Autoclass without the terminal class that is only the default: the service knows it, too."""
    name = "terminalStorageClass"
    assert isinstance(autoclass, Mapping)
    if name in (said.get("autoclass") or {}) or name in (view.get("autoclass") or {}):
        return autoclass
    return {part: value for part, value in autoclass.items() if part != name}


# --- The members of a bucket, from the fields of the spec -------------------------------------------------------------


def _members(tree: JsonObject) -> dict[str, Json]:
    """Every member that the tree speaks of, as the API takes it."""
    spec, metadata = _spec(tree), tree.get("metadata", {})
    assert isinstance(metadata, Mapping)
    found = {member: build(spec) for member, build in _BUILDERS.items()}
    members: dict[str, Json] = {member: one for member, one in found.items() if not isinstance(one, Missing)}
    return {**members, "labels": metadata.get("labels", {})}


def _iam(spec: _Spec) -> Json:
    prevention = spec.get("publicAccessPrevention")
    uniform = {"uniformBucketLevelAccess": {"enabled": bool(spec.get("uniformBucketLevelAccess"))}}
    return {**uniform, "publicAccessPrevention": prevention} if prevention else uniform


def _autoclass(spec: _Spec) -> Json | Missing:
    autoclass = spec.get("autoclass")
    if not autoclass:
        return MISSING
    return dict(autoclass) if autoclass.get("enabled") else {"enabled": False}


def _ip_filter(spec: _Spec) -> Json | Missing:
    said = spec.get("ipFilter")
    if not said:
        return MISSING
    sources = [
        {
            "network": _network_link(source["networkRef"]["external"]),
            "allowedIpCidrRanges": source.get("allowedIpCidrRanges", []),
        }
        for source in said.get("vpcNetworkSources") or ()
    ]
    flags = {flag: bool(said.get(flag)) for flag in ("allowCrossOrgVpcs", "allowAllServiceAgentAccess")}
    public = {name: said[name] for name in ("publicNetworkSource",) if said.get(name)}
    return {"mode": said.get("mode", "Disabled"), **public, "vpcNetworkSources": sources, **flags}


def _network_link(network: str) -> str:
    """A network as Config Connector names it here: by its whole link."""
    return f"{_COMPUTE}{network}" if network.startswith("projects/") else network


def _text_in(part: str, field: str) -> Callable[[_Spec], Json | Missing]:
    """A part with one 64-bit integer in it, which JSON carries as text."""

    def build(spec: _Spec) -> Json | Missing:
        number = (spec.get(part) or {}).get(field)
        return MISSING if number is None else {field: str(number)}

    return build


def _same_member(field: str) -> Callable[[_Spec], Json | Missing]:
    """A field that is a member of the same name and form; an empty one is none."""

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
