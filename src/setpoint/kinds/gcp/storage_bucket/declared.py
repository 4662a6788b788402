"""What the author of a StorageBucket asks for, in the form in which it is compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from setpoint.core.values import Json
from setpoint.engine.kind import Need, Resolved
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kinds.config_connector import Ref, Target, reference_at, relative, resource_id, self_link
from setpoint.kinds.gcp.storage_bucket.lifecycle import declared_rules
from setpoint.kinds.gcp.storage_bucket.spec import Encryption, IpFilter, StorageBucketSpec
from setpoint.kinds.typed_spec import read_spec

KEY: Final = Target("kms.cnrm.cloud.google.com", "KMSCryptoKey")
NETWORK: Final = Target("compute.cnrm.cloud.google.com", "ComputeNetwork")
_KEY_AT: Final = "spec.encryption.kmsKeyRef"


def check_bucket(resource: Resource) -> None:
    """ManifestInvalid for a spec that no bucket can have, whatever else there is in the world."""
    spec = read_spec(resource, StorageBucketSpec)
    resource_id(resource)
    declared_rules(spec.lifecycleRule or ())
    _placement(spec, resource)
    for at, ref, target in _references(spec):
        reference_at(at, ref, resource, target)


def bucket_needs(resource: Resource) -> Sequence[Need]:
    """The key and the networks that are named as resources."""
    if "encryption" not in resource.spec and "ipFilter" not in resource.spec:
        return ()
    spec = read_spec(resource, StorageBucketSpec)
    found = [reference_at(at, ref, resource, target) for at, ref, target in _references(spec)]
    return [one for one in found if one is not None]


def declared_bucket(resource: Resource, resolved: Resolved) -> Mapping[str, Json]:
    """The spec as it is compared: one spelling for what may be written in several ways."""
    spec = read_spec(resource, StorageBucketSpec)
    tree: dict[str, Any] = msgspec.to_builtins(spec)
    # The name is the location: a change of it is refused before any look.
    tree.pop("resourceID", None)
    older = tree.pop("bucketPolicyOnly", None)
    if older is not None and tree.get("uniformBucketLevelAccess") is None:
        tree["uniformBucketLevelAccess"] = older
    if spec.lifecycleRule:
        tree["lifecycleRule"] = declared_rules(spec.lifecycleRule)
    _place(tree, spec, resource)
    _classes(tree, spec)
    _references_resolved(tree, spec, resolved)
    _one_form(tree, resource_id(resource))
    return tree


def _place(tree: dict[str, Any], spec: StorageBucketSpec, resource: Resource) -> None:
    if spec.location:
        tree["location"] = spec.location.upper()
    else:
        tree.pop("location", None)
    if spec.customPlacementConfig:
        tree["customPlacementConfig"] = {"dataLocations": _placement(spec, resource)}


def _placement(spec: StorageBucketSpec, resource: Resource) -> Sequence[str]:
    """The regions of a dual region, in one order; none when there is no such thing."""
    if not spec.customPlacementConfig:
        return ()
    regions = sorted({region.upper() for region in spec.customPlacementConfig.dataLocations})
    if len(regions) != 2:
        raise ManifestInvalid(
            f"{resource.ref}: spec.customPlacementConfig.dataLocations has to name two regions, such as "
            "[EUROPE-WEST1, EUROPE-WEST4]"
        )
    return regions


def _classes(tree: dict[str, Any], spec: StorageBucketSpec) -> None:
    if spec.autoclass and not spec.autoclass.enabled:
        tree["autoclass"].pop("terminalStorageClass", None)


def _references(spec: StorageBucketSpec) -> Iterator[tuple[str, Ref, Target]]:
    if isinstance(spec.encryption, Encryption):
        yield _KEY_AT, spec.encryption.kmsKeyRef, KEY
    if isinstance(spec.ipFilter, IpFilter):
        for position, source in enumerate(spec.ipFilter.vpcNetworkSources or ()):
            yield f"spec.ipFilter.vpcNetworkSources[{position}].networkRef", source.networkRef, NETWORK


def _references_resolved(tree: dict[str, Any], spec: StorageBucketSpec, resolved: Resolved) -> None:
    links = [(target, relative(self_link(at, ref, resolved))) for at, ref, target in _references(spec)]
    networks = [link for target, link in links if target is NETWORK]
    for target, link in links:
        if target is KEY:
            tree["encryption"] = {"kmsKeyRef": {"external": link}}
    if networks:
        sources = tree["ipFilter"]["vpcNetworkSources"]
        tree["ipFilter"]["vpcNetworkSources"] = [
            {**source, "networkRef": {"external": link}} for source, link in zip(sources, networks, strict=True)
        ]


def _one_form(tree: dict[str, Any], bucket: str) -> None:
    """Empty text asks for removal, as null does; inside a list, which is compared whole, it says nothing."""
    if tree.get("cors"):
        tree["cors"] = [plain(one) for one in tree["cors"]]
    for name in ("logging", "website"):
        if tree.get(name):
            tree[name] = {part: value or None for part, value in tree[name].items()}
    if tree.get("logging"):
        tree["logging"] = without_own_prefix(tree["logging"], bucket)


def plain(part: Mapping[str, Json]) -> dict[str, Json]:
    """A part without what says nothing in it: nulls, empty lists, empty text."""
    return {name: value for name, value in part.items() if value not in (None, "", [])}


def without_own_prefix(logging: Mapping[str, Json], bucket: str) -> dict[str, Json]:
    """Logging without the prefix that logs have when nobody gives one: the bucket's name."""
    return {name: value for name, value in logging.items() if (name, value) != ("logObjectPrefix", bucket)}
