"""The author's StorageBucket: validated, and normalized for the comparison with the live bucket."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import msgspec

from setpoint.core.values.json_types import Json
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.paths import Path, get_at
from setpoint.core.values.problems import Problems
from setpoint.engine.kind import Dependency, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_PROJECT,
    BUCKET_NAME,
    ReferenceTarget,
    SpecReference,
    TenantProjects,
    reference_at,
    relative_link,
    resource_id,
    self_link,
    without_empty,
)
from setpoint.kinds.gcp.storage_bucket.live import LiveLifecycle
from setpoint.kinds.gcp.storage_bucket.spec import (
    CONDITION_NOT_EMPTY,
    BucketEncryption,
    BucketIpFilter,
    StorageBucketSpec,
)

KEY: Final = ReferenceTarget("kms.cnrm.cloud.google.com", "KMSCryptoKey")
NETWORK: Final = ReferenceTarget("compute.cnrm.cloud.google.com", "ComputeNetwork")
_KEY_AT: Final = "spec.encryption.kmsKeyRef"


def check_bucket(resource: Resource) -> None:
    """ManifestInvalid for a spec that is invalid whatever the live state."""
    problems = Problems()
    spec = problems.collect(decode_spec, resource, StorageBucketSpec)
    problems.collect(resource_id, resource, BUCKET_NAME)
    if spec is not None:
        problems.collect(declared_rules, msgspec.to_builtins(spec.lifecycleRule or ()))
        problems.collect(_placement, spec, resource)
        for at, ref, target in _references(spec):
            problems.collect(reference_at, at, ref, resource, target)
    problems.require_none()


def bucket_dependencies(resource: Resource) -> Sequence[Dependency]:
    """The key and the networks that are referred to as resources."""
    # Nothing is decoded for the many that refer to nothing.
    if not resource.mentions("Ref") or ("encryption" not in resource.spec and "ipFilter" not in resource.spec):
        return ()
    spec = decode_spec(resource, StorageBucketSpec)
    found = [reference_at(at, ref, resource, target) for at, ref, target in _references(spec)]
    return [one for one in found if one is not None]


def declared_bucket(
    resource: Resource, resolved: ResolvedReferences, projects: TenantProjects = ANY_PROJECT
) -> Mapping[str, Json]:
    """The normalized spec, with references resolved; ProjectRefused for a network of another tenant's project."""
    spec = decode_spec(resource, StorageBucketSpec)
    tree: dict[str, Any] = msgspec.to_builtins(spec)
    # The name is the location: a change of it is refused before the bucket is read.
    tree.pop("resourceID", None)
    older = tree.pop("bucketPolicyOnly", None)
    if older is not None and tree.get("uniformBucketLevelAccess") is None:
        tree["uniformBucketLevelAccess"] = older
    if spec.lifecycleRule:
        tree["lifecycleRule"] = declared_rules(tree["lifecycleRule"])
    _place(tree, spec, resource)
    _classes(tree, spec)
    _references_resolved(tree, spec, resolved)
    for at, _, target in _references(spec):
        if target is NETWORK:
            link = get_at({"spec": tree}, Path.parse(at) / "external")
            projects.require_network(str(link), resource, at)
    _normalize(tree, resource_id(resource, BUCKET_NAME))
    return tree


def _place(tree: dict[str, Any], spec: StorageBucketSpec, resource: Resource) -> None:
    if spec.location:
        tree["location"] = spec.location.upper()
    else:
        tree.pop("location", None)
    if spec.customPlacementConfig:
        tree["customPlacementConfig"] = {"dataLocations": _placement(spec, resource)}


def _placement(spec: StorageBucketSpec, resource: Resource) -> Sequence[str]:
    """The two regions of a dual-region bucket, sorted; empty for any other bucket."""
    if not spec.customPlacementConfig:
        return ()
    regions = sorted({region.upper() for region in spec.customPlacementConfig.dataLocations})
    if len(regions) != 2:
        problem = " has to name two regions, such as [EUROPE-WEST1, EUROPE-WEST4]"
        raise field_invalid(resource, "spec.customPlacementConfig.dataLocations", problem)
    return regions


def _classes(tree: dict[str, Any], spec: StorageBucketSpec) -> None:
    if spec.autoclass and not spec.autoclass.enabled:
        tree["autoclass"].pop("terminalStorageClass", None)


def _references(spec: StorageBucketSpec) -> Iterator[tuple[str, SpecReference, ReferenceTarget]]:
    if isinstance(spec.encryption, BucketEncryption):
        yield _KEY_AT, spec.encryption.kmsKeyRef, KEY
    if isinstance(spec.ipFilter, BucketIpFilter):
        for position, source in enumerate(spec.ipFilter.vpcNetworkSources or ()):
            yield f"spec.ipFilter.vpcNetworkSources[{position}].networkRef", source.networkRef, NETWORK


def _references_resolved(tree: dict[str, Any], spec: StorageBucketSpec, resolved: ResolvedReferences) -> None:
    links = [(target, relative_link(self_link(at, ref, resolved))) for at, ref, target in _references(spec)]
    networks = [link for target, link in links if target is NETWORK]
    for target, link in links:
        if target is KEY:
            tree["encryption"] = {"kmsKeyRef": {"external": link}}
    if networks:
        sources = tree["ipFilter"]["vpcNetworkSources"]
        tree["ipFilter"]["vpcNetworkSources"] = [
            {**source, "networkRef": {"external": link}} for source, link in zip(sources, networks, strict=True)
        ]


def _normalize(tree: dict[str, Any], bucket: str) -> None:
    """Empty text becomes null: both remove the value. In a list, which is compared as a whole, it is dropped."""
    if tree.get("cors"):
        tree["cors"] = [without_empty(one) for one in tree["cors"]]
    for name in ("logging", "website"):
        if tree.get(name):
            tree[name] = {part: value or None for part, value in tree[name].items()}
    if tree.get("logging"):
        tree["logging"] = without_default_prefix(tree["logging"], bucket)


def without_default_prefix(logging: Mapping[str, Json], bucket: str) -> dict[str, Json]:
    """Logging without the default prefix of logs: the name of the bucket."""
    return {name: value for name, value in logging.items() if (name, value) != ("logObjectPrefix", bucket)}


# --- Lifecycle rules -------------------------------------------------------------------------------------------------
# A normalized rule has no nulls, no empty lists, no `withState: ANY` and no age of 0 days, which every object has.

# Its action and its condition.
_Rule: TypeAlias = dict[str, dict[str, Any]]
_STATES: Final = {True: "LIVE", False: "ARCHIVED"}


def declared_rules(rules: Sequence[_Rule]) -> list[Json]:
    """The normalized declared rules; ManifestInvalid for a rule whose empty condition would match every object."""
    normalized = _normalized_rules(rules)
    for position, rule in enumerate(normalized):
        # What is left of a condition says something.
        if not (rule["condition"] or CONDITION_NOT_EMPTY.rule.holds(rules[position]["condition"])):
            place = FieldTerm(f"spec.lifecycleRule[{position}].condition")
            raise ManifestInvalid(Message(place, f" {CONDITION_NOT_EMPTY.message}"))
    return [*normalized]


def live_rules(lifecycle: LiveLifecycle) -> list[Json]:
    """The normalized live rules."""
    rules: Sequence[_Rule] = msgspec.to_builtins(lifecycle.rule or ())
    for rule in rules:
        condition = rule["condition"]
        if "isLive" in condition:
            is_live = condition.pop("isLive")
            if is_live is not None:
                condition["withState"] = _STATES[is_live]
    return [*_normalized_rules(rules)]


def request_rule(rule: Json) -> Json:
    """A rule for a request. The age is always sent, as Config Connector does."""
    assert isinstance(rule, Mapping)
    declared = rule.get("condition", {})
    assert isinstance(declared, Mapping)
    condition: dict[str, Json] = {"age": 0, **{name: value for name, value in declared.items() if name != "withState"}}
    if "withState" in declared:
        condition["isLive"] = declared["withState"] == "LIVE"
    return {"action": rule["action"], "condition": condition}


def _normalized_rules(rules: Sequence[_Rule]) -> Sequence[_Rule]:
    """The rules without what says nothing; the rules themselves where they are normalized already, as most are."""
    parts = [part for rule in rules for part in (rule["action"], rule["condition"])]
    said = [*chain.from_iterable(map(dict.values, parts))]
    return rules if all(said) and "ANY" not in said else [*map(_normalized_rule, rules)]


def _normalized_rule(rule: _Rule) -> _Rule:
    action = {name: value for name, value in rule["action"].items() if value}
    condition = {name: value for name, value in rule["condition"].items() if _is_kept(name, value)}
    return {"action": action, "condition": condition}


def _is_kept(name: str, value: object) -> bool:
    return (bool(value) and value != "ANY") or (value == 0 and name != "age")
