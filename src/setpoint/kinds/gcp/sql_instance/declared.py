"""What the author of a SQLInstance asks for, in the form in which it is compared."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from setpoint.core.paths import Path, get_at
from setpoint.core.policy import FieldPolicy
from setpoint.core.shape import shape_of
from setpoint.core.values import Json
from setpoint.engine.kind import Need, Reference, Resolved, SecretKey
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, UserError
from setpoint.kinds.cloud_sql import secret_need
from setpoint.kinds.config_connector import (
    Ref,
    Target,
    project_of,
    reference_at,
    relative,
    resource_id,
    self_link,
)
from setpoint.kinds.gcp.sql_instance.spec import ENTERPRISE, PLUS, SecretText, SqlInstanceSpec, SqlInstanceTree
from setpoint.kinds.gcp.sql_instance.spelling import (
    authorized_network,
    insights_config,
    instance_path,
    psc_config,
    with_ssl_mode,
)
from setpoint.kinds.typed_spec import read_spec

GROUP: Final = "sql.cnrm.cloud.google.com"
INSTANCE: Final = Target(GROUP, "SQLInstance")
KEY: Final = Target("kms.cnrm.cloud.google.com", "KMSCryptoKey")
NETWORK: Final = Target("compute.cnrm.cloud.google.com", "ComputeNetwork")
BUCKET: Final = Target("storage.cnrm.cloud.google.com", "StorageBucket")
_EDITION: Final = Path(("spec", "settings", "edition"))
_ROOT: Final = "spec.rootPassword"
CLONED: Final = "spec.cloneSource.sqlInstanceRef"


@dataclass(frozen=True, slots=True)
class _Referring:
    """A field that names something else: what it names, and how that is written in the API."""

    at: str
    target: Target
    value: Callable[[str, Ref, Resource, Resolved], str]
    # Another instance need not be well for this one to be kept as it is: only for it to be made.
    only_to_begin_with: bool = False


def check_instance(resource: Resource) -> None:
    """ManifestInvalid for a spec that no instance can have, whatever else there is in the world."""
    spec = read_spec(resource, SqlInstanceSpec)
    resource_id(resource)
    for referring, ref in _references(spec):
        reference_at(referring.at, ref, resource, referring.target)
    for at, secret in _secrets(spec):
        _secret_need(at, secret, resource)
    networks = spec.settings.ipConfiguration
    if networks and len(networks.pscConfig or ()) > 1:
        raise ManifestInvalid(f"{resource.ref}: spec.settings.ipConfiguration.pscConfig takes one element: keep one")
    if spec.settings.edition and spec.settings.edition not in (ENTERPRISE, PLUS) and not _is_unmanaged(resource):
        raise ManifestInvalid(
            f"{resource.ref}: spec.settings.edition is {spec.settings.edition!r}: write {ENTERPRISE} or {PLUS}"
        )


def _is_unmanaged(resource: Resource) -> bool:
    """Whether the edition is somebody else's business: then it does not matter what stands there."""
    listed = FieldPolicy.parse(resource.annotations, shape_of(SqlInstanceTree)).unmanaged
    return any(path.covers(_EDITION) for path in listed)


def instance_needs(resource: Resource) -> Sequence[Need]:
    """What is named as a resource, and the secrets."""
    spec = read_spec(resource, SqlInstanceSpec)
    is_made = _is_made(resource)
    found: list[Need] = []
    for referring, ref in _references(spec):
        need = reference_at(referring.at, ref, resource, referring.target)
        if need is None or (is_made and referring.at == CLONED):
            continue
        found.append(_softened(need, referring, is_made=is_made))
    secrets = (_secret_need(at, secret, resource) for at, secret in _secrets_to_send(spec, resource))
    return [*found, *(need for need in secrets if need is not None)]


def _is_made(resource: Resource) -> bool:
    """Whether the instance has been seen."""
    return "selfLink" in resource.status


def _softened(need: Reference, referring: _Referring, *, is_made: bool) -> Reference:
    # The replica for a failover may well wait for this very instance.
    is_soft = (referring.only_to_begin_with and is_made) or referring.at == _FAILOVER
    return replace(need, must_be_ready=not is_soft)


def declared_instance(resource: Resource, resolved: Resolved) -> Mapping[str, Json]:
    """The spec as it is compared: one spelling for what may be written in several ways."""
    spec = read_spec(resource, SqlInstanceSpec)
    tree: dict[str, Any] = msgspec.to_builtins(spec)
    # The name is the location, and where the data came from is history.
    tree.pop("resourceID", None)
    tree.pop("cloneSource", None)
    _blank_is_null(tree)
    if tree.get("region") is None:
        # No instance is nowhere: without a word of the author's the service chooses.
        tree.pop("region", None)
    for referring, ref in _references(spec):
        if referring.at != CLONED:
            value = referring.value(referring.at, ref, resource, resolved)
            _put(tree, referring.at, {"external": value})
    if _waits_for_its_clone(spec, resource):
        tree.pop("rootPassword", None)
    for at, secret in _secrets_to_send(spec, resource):
        password = resolved.secrets[at] if secret.valueFrom else secret.value
        assert isinstance(password, str)
        _put(tree, at, {"value": password})
    _one_form(tree["settings"])
    return _with_ssl_mode(tree)


def clone_source(resource: Resource, resolved: Resolved) -> str:
    """The name of the instance to clone; UserError for a clone that was there: its data is not to be had again."""
    if _is_made(resource):
        raise UserError(
            f"{resource.ref} was a clone, and is gone: what it held cannot be cloned again. "
            "Delete the resource, and apply it again for a new clone"
        )
    spec = read_spec(resource, SqlInstanceSpec)
    assert spec.cloneSource
    return _instance_of(CLONED, spec.cloneSource.sqlInstanceRef, resource, resolved).rpartition(":")[2]


# --- References ------------------------------------------------------------------------------------------------------


def _references(spec: SqlInstanceSpec) -> Iterator[tuple[_Referring, Ref]]:
    for referring in _REFERRING:
        found: Any = spec
        for step in Path.parse(referring.at).steps[1:]:
            found = getattr(found, str(step), None) or None
        if found is not None:
            yield referring, found


def _instance_of(at: str, ref: Ref, resource: Resource, resolved: Resolved) -> str:
    if at in resolved.resources:
        other = resolved.resources[at]
        return f"{project_of(other)}:{resource_id(other)}"
    assert ref.external
    return instance_path(ref.external, project_of(resource))


def _name_of_instance(at: str, ref: Ref, resource: Resource, resolved: Resolved) -> str:
    return _instance_of(at, ref, resource, resolved).rpartition(":")[2]


def _key_of(at: str, ref: Ref, resource: Resource, resolved: Resolved) -> str:
    return relative(self_link(at, ref, resolved))


def _network_of(at: str, ref: Ref, resource: Resource, resolved: Resolved) -> str:
    if at not in resolved.resources:
        return relative(ref.external or "")
    network = resolved.resources[at]
    for member in ("externalRef", "selfLink"):
        found = get_at(network.document, Path(("status", member)))
        if isinstance(found, str):
            return relative(found)
    return f"projects/{project_of(network)}/global/networks/{resource_id(network)}"


def _bucket_of(at: str, ref: Ref, resource: Resource, resolved: Resolved) -> str:
    if at in resolved.resources:
        return f"gs://{resource_id(resolved.resources[at])}"
    return f"gs://{(ref.external or '').removeprefix('gs://').rpartition('/')[2]}"


_FAILOVER: Final = "spec.replicationCluster.failoverDrReplicaRef"
_REFERRING: Final = (
    _Referring("spec.masterInstanceRef", INSTANCE, _instance_of, only_to_begin_with=True),
    _Referring("spec.encryptionKMSCryptoKeyRef", KEY, _key_of),
    _Referring(_FAILOVER, INSTANCE, _name_of_instance),
    _Referring(CLONED, INSTANCE, _instance_of),
    _Referring("spec.settings.ipConfiguration.privateNetworkRef", NETWORK, _network_of),
    _Referring("spec.settings.sqlServerAuditConfig.bucketRef", BUCKET, _bucket_of),
)


# --- Secrets ---------------------------------------------------------------------------------------------------------


def _secrets(spec: SqlInstanceSpec) -> Iterator[tuple[str, SecretText]]:
    if spec.rootPassword:
        yield _ROOT, spec.rootPassword
    if spec.replicaConfiguration and spec.replicaConfiguration.password:
        yield "spec.replicaConfiguration.password", spec.replicaConfiguration.password


def _secrets_to_send(spec: SqlInstanceSpec, resource: Resource) -> Iterator[tuple[str, SecretText]]:
    waits = _waits_for_its_clone(spec, resource)
    return ((at, secret) for at, secret in _secrets(spec) if not (waits and at == _ROOT))


def _waits_for_its_clone(spec: SqlInstanceSpec, resource: Resource) -> bool:
    """Whether the root password has to wait: a clone begins with its source's, and gets its own when it is there."""
    return bool(spec.cloneSource) and not _is_made(resource)


def _secret_need(at: str, secret: SecretText, resource: Resource) -> SecretKey | None:
    return secret_need(at, secret.value, secret.valueFrom.secretKeyRef if secret.valueFrom else None, resource)


# --- One form --------------------------------------------------------------------------------------------------------


def _with_ssl_mode(tree: dict[str, Any]) -> Mapping[str, Json]:
    """Without a version the engine is known only once the instance is there."""
    version = tree.get("databaseVersion")
    return with_ssl_mode(tree, version) if version else tree


def _put(tree: dict[str, Any], at: str, value: Json) -> None:
    *way, last = Path.parse(at).steps[1:]
    for step in way:
        tree = tree[str(step)]
    tree[str(last)] = value


def _blank_is_null(part: dict[str, Any]) -> None:
    """Empty text asks for removal, as null does; inside a list it is what it is."""
    for name, value in part.items():
        if value == "":
            part[name] = None
        elif isinstance(value, dict):
            _blank_is_null(value)


def _one_form(settings: dict[str, Any]) -> None:
    if settings.get("availabilityType"):
        settings["availabilityType"] = settings["availabilityType"].upper()
    if settings.get("insightsConfig"):
        settings["insightsConfig"] = insights_config(settings["insightsConfig"])
    network = settings.get("ipConfiguration") or {}
    if network.get("authorizedNetworks"):
        network["authorizedNetworks"] = [authorized_network(one) for one in network["authorizedNetworks"]]
    if network.get("pscConfig"):
        network["pscConfig"] = psc_config(network["pscConfig"][0])
