"""The author's SQLInstance: validated, normalized for the comparison, and fitted to what the live instance allows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, get_at
from setpoint.core.values.problems import Problems
from setpoint.engine.kind import Dependency, Reference, ResolvedReferences, SecretKeyReference
from setpoint.engine.resource import Resource
from setpoint.errors import UserError
from setpoint.kind.spec_references import secret_dependency
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.gcp.shared.config_connector import (
    BUCKET_NAME,
    INSTANCE_NAME,
    ReferenceTarget,
    SpecReference,
    TenantProjects,
    reference_at,
    relative_link,
    resource_id,
    self_link,
)
from setpoint.kinds.gcp.sql_instance.normalization import (
    authorized_network,
    insights_config,
    instance_path,
    psc_config,
    with_ssl_mode,
)
from setpoint.kinds.gcp.sql_instance.spec import (
    SecretText,
    SqlInstanceSpec,
)

GROUP: Final = "sql.cnrm.cloud.google.com"
INSTANCE: Final = ReferenceTarget(GROUP, "SQLInstance")
KEY: Final = ReferenceTarget("kms.cnrm.cloud.google.com", "KMSCryptoKey")
NETWORK: Final = ReferenceTarget("compute.cnrm.cloud.google.com", "ComputeNetwork")
BUCKET: Final = ReferenceTarget("storage.cnrm.cloud.google.com", "StorageBucket")
_EDITION: Final = Path(("spec", "settings", "edition"))
_ROOT: Final = "spec.rootPassword"
CLONE_SOURCE_REF: Final = "spec.cloneSource.sqlInstanceRef"


@dataclass(frozen=True, slots=True)
class _Referrer:
    """A reference field of one resource, what references resolved to, and the projects that they may name."""

    at: str
    resource: Resource
    resolved: ResolvedReferences
    projects: TenantProjects

    @property
    def target(self) -> Resource | None:
        """The resource that the field refers to; None for an external object."""
        return self.resolved.resources.get(self.at)


@dataclass(frozen=True, slots=True)
class _ReferenceField:
    """A reference field: its target, and how the API writes the value."""

    at: str
    target: ReferenceTarget
    value: Callable[["_Referrer", SpecReference], str]
    # The referenced instance has to be ready for the creation of this one, not for later reconciliation.
    only_for_creation: bool = False


def check_instance(resource: Resource) -> None:
    """ManifestInvalid for a spec that is invalid whatever the live state."""
    problems = Problems()
    spec = problems.collect(decode_spec, resource, SqlInstanceSpec)
    problems.collect(resource_id, resource, INSTANCE_NAME)
    if spec is not None:
        for referring, ref in _references(spec):
            problems.collect(reference_at, referring.at, ref, resource, referring.target)
        for at, secret in _secrets(spec):
            problems.collect(_secret_dependency, at, secret, resource)
    problems.require_none()


def instance_dependencies(resource: Resource) -> Sequence[Dependency]:
    """The referenced resources, and the secrets."""
    spec = decode_spec(resource, SqlInstanceSpec)
    was_created = _was_created(resource)
    found: list[Dependency] = []
    for referring, ref in _references(spec):
        dependency = reference_at(referring.at, ref, resource, referring.target)
        if dependency is None or (was_created and referring.at == CLONE_SOURCE_REF):
            continue
        found.append(_softened(dependency, referring, was_created=was_created))
    secrets = (_secret_dependency(at, secret, resource) for at, secret in _secrets_to_send(spec, resource))
    return [*found, *(dependency for dependency in secrets if dependency is not None)]


def _was_created(resource: Resource) -> bool:
    """Whether the instance has been observed before."""
    return "selfLink" in resource.status


def _softened(dependency: Reference, referring: _ReferenceField, *, was_created: bool) -> Reference:
    # The failover replica may itself wait for this instance.
    is_soft = (referring.only_for_creation and was_created) or referring.at == _FAILOVER
    return replace(dependency, must_be_ready=not is_soft)


def declared_instance(resource: Resource, resolved: ResolvedReferences, projects: TenantProjects) -> Mapping[str, Json]:
    """The normalized spec, with references and secrets resolved; ProjectRefused for a reference to another tenant's."""
    spec = decode_spec(resource, SqlInstanceSpec)
    tree: dict[str, Any] = msgspec.to_builtins(spec)
    # The name is part of the location; the clone source matters at creation only.
    tree.pop("resourceID", None)
    tree.pop("cloneSource", None)
    _empty_to_null(tree)
    if tree.get("region") is None:
        # Every instance has a region: left out, the service chooses it.
        tree.pop("region", None)
    for referring, ref in _references(spec):
        referrer = _Referrer(referring.at, resource, resolved, projects)
        if referring.at != CLONE_SOURCE_REF:
            _put(tree, referring.at, {"external": referring.value(referrer, ref)})
        elif projects.tenant is not None and not _was_created(resource):
            # Refused before anything is asked, and not only when the clone is made.
            referring.value(referrer, ref)
    if _awaits_clone(spec, resource):
        tree.pop("rootPassword", None)
    for at, secret in _secrets_to_send(spec, resource):
        password = resolved.secrets[at] if secret.valueFrom else secret.value
        if not isinstance(password, str):
            raise field_invalid(resource, at, " needs value or valueFrom, and not both: write one of them")
        _put(tree, at, {"value": password})
    _normalize_settings(tree["settings"])
    return _with_ssl_mode(tree)


def clone_source(resource: Resource, resolved: ResolvedReferences, projects: TenantProjects) -> str:
    """The name of the instance to clone; UserError for a clone that existed before: its data is lost."""
    if _was_created(resource):
        raise UserError(
            f"{resource.ref} was a clone, and is gone: what it held cannot be cloned again. "
            "Delete the resource, and apply it again for a new clone"
        )
    source = decode_spec(resource, SqlInstanceSpec).cloneSource
    ref = source.sqlInstanceRef if source else SpecReference()
    name = _name_of_instance(_Referrer(CLONE_SOURCE_REF, resource, resolved, projects), ref)
    if not INSTANCE_NAME.allows(name):
        raise field_invalid(resource, f"{CLONE_SOURCE_REF}.external", f" is {name!r}: write {INSTANCE_NAME.advice}")
    return name


# --- References ------------------------------------------------------------------------------------------------------


def _references(spec: SqlInstanceSpec) -> Iterator[tuple[_ReferenceField, SpecReference]]:
    for referring in _REFERENCE_FIELDS:
        found: Any = spec
        for step in Path.parse(referring.at).steps[1:]:
            found = getattr(found, str(step), None) or None
        if found is not None:
            yield referring, found


def _instance_of(referrer: _Referrer, ref: SpecReference) -> str:
    projects, resource = referrer.projects, referrer.resource
    if (other := referrer.target) is not None:
        project = projects.resolve_target(referrer.at, other, resource).project
        return f"{project}:{resource_id(other, INSTANCE_NAME)}"
    external = ref.external or ""
    projects.require_instance(external, resource, f"{referrer.at}.external")
    return instance_path(external, projects.of(resource))


def _name_of_instance(referrer: _Referrer, ref: SpecReference) -> str:
    return _instance_of(referrer, ref).rpartition(":")[2]


def _key_of(referrer: _Referrer, ref: SpecReference) -> str:
    return relative_link(self_link(referrer.at, ref, referrer.resolved))


def _network_of(referrer: _Referrer, ref: SpecReference) -> str:
    link = _network_link(referrer, ref)
    referrer.projects.require_network(link, referrer.resource, referrer.at)
    return link


def _network_link(referrer: _Referrer, ref: SpecReference) -> str:
    network = referrer.target
    if network is None:
        return relative_link(ref.external or "")
    for member in ("externalRef", "selfLink"):
        found = get_at(network.document, Path(("status", member)))
        if isinstance(found, str):
            return relative_link(found)
    return f"projects/{referrer.projects.named_by(network)}/global/networks/{resource_id(network)}"


def _bucket_of(referrer: _Referrer, ref: SpecReference) -> str:
    if (bucket := referrer.target) is not None:
        return f"gs://{resource_id(bucket, BUCKET_NAME)}"
    return f"gs://{(ref.external or '').removeprefix('gs://').rpartition('/')[2]}"


_FAILOVER: Final = "spec.replicationCluster.failoverDrReplicaRef"
_REFERENCE_FIELDS: Final = (
    _ReferenceField("spec.masterInstanceRef", INSTANCE, _instance_of, only_for_creation=True),
    _ReferenceField("spec.encryptionKMSCryptoKeyRef", KEY, _key_of),
    _ReferenceField(_FAILOVER, INSTANCE, _name_of_instance),
    _ReferenceField(CLONE_SOURCE_REF, INSTANCE, _instance_of),
    _ReferenceField("spec.settings.ipConfiguration.privateNetworkRef", NETWORK, _network_of),
    _ReferenceField("spec.settings.sqlServerAuditConfig.bucketRef", BUCKET, _bucket_of),
)


# --- Secrets ---------------------------------------------------------------------------------------------------------


def _secrets(spec: SqlInstanceSpec) -> Iterator[tuple[str, SecretText]]:
    if spec.rootPassword:
        yield _ROOT, spec.rootPassword
    if spec.replicaConfiguration and spec.replicaConfiguration.password:
        yield "spec.replicaConfiguration.password", spec.replicaConfiguration.password


def _secrets_to_send(spec: SqlInstanceSpec, resource: Resource) -> Iterator[tuple[str, SecretText]]:
    waits = _awaits_clone(spec, resource)
    return ((at, secret) for at, secret in _secrets(spec) if not (waits and at == _ROOT))


def _awaits_clone(spec: SqlInstanceSpec, resource: Resource) -> bool:
    """Whether the root password has to wait: a new clone has that of its source, and gets its own afterwards."""
    return bool(spec.cloneSource) and not _was_created(resource)


def _secret_dependency(at: str, secret: SecretText, resource: Resource) -> SecretKeyReference | None:
    return secret_dependency(at, secret.value, secret.valueFrom.secretKeyRef if secret.valueFrom else None, resource)


# --- Normalization ---------------------------------------------------------------------------------------------------


def _with_ssl_mode(tree: dict[str, Any]) -> Mapping[str, Json]:
    """The tree with its `sslMode`, if the engine is declared; else that follows from the live instance."""
    version = tree.get("databaseVersion")
    return with_ssl_mode(tree, version) if version else tree


def _put(tree: dict[str, Any], at: str, value: Json) -> None:
    *way, last = Path.parse(at).steps[1:]
    for step in way:
        tree = tree[str(step)]
    tree[str(last)] = value


def _empty_to_null(part: dict[str, Any]) -> None:
    """Replaces empty text by null: both remove the value. Lists are left unchanged."""
    for name, value in part.items():
        if value == "":
            part[name] = None
        elif isinstance(value, dict):
            _empty_to_null(value)


def _normalize_settings(settings: dict[str, Any]) -> None:
    if settings.get("availabilityType"):
        settings["availabilityType"] = settings["availabilityType"].upper()
    if settings.get("insightsConfig"):
        settings["insightsConfig"] = insights_config(settings["insightsConfig"])
    network = settings.get("ipConfiguration") or {}
    if network.get("authorizedNetworks"):
        network["authorizedNetworks"] = [authorized_network(one) for one in network["authorizedNetworks"]]
    if network.get("pscConfig"):
        network["pscConfig"] = psc_config(network["pscConfig"][0])
