"""Every kind and owner that setpoint has, and their CustomResourceDefinitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import AnyKind, DescribedType, ResourceType, find_kind
from setpoint.engine.owner import SECRETS, Owner
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT, ReferenceGrantType
from setpoint.kinds.gcp.shared.config_connector import TenantProjects
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.kinds.trustee.kbs_config.owner import KbsConfigOwner
from setpoint.kinds.trustee.trustee_config.owner import TrusteeConfigOwner
from setpoint.stores.manifest_types import ManifestTypes, manifest_types


def kinds_with(
    google: GoogleClient, clusters: Clusters, clock: Clock, environment: Mapping[str, str]
) -> Mapping[GroupKind, AnyKind]:
    """Every kind, with these clients; the environment may name the Google project of resources that name none."""
    projects = TenantProjects(environment=environment)
    kinds: tuple[AnyKind, ...] = (
        StorageBucketKind(google, projects=projects),
        SqlInstanceKind(google, projects=projects),
        SqlDatabaseKind(google, projects=projects),
        SqlUserKind(google, projects=projects),
        KubernetesObjectKind(clusters, clock),
    )
    return {(kind.group, kind.name): kind for kind in kinds}


def owners_with(environment: Mapping[str, str]) -> Mapping[GroupKind, Owner]:
    """Every owner; some take the names of images from the environment."""
    owners: tuple[Owner, ...] = (TrusteeConfigOwner(), KbsConfigOwner(environment))
    return {(owner.group, owner.name): owner for owner in owners}


def definitions() -> Mapping[GroupKind, JsonObject]:
    """The CustomResourceDefinition of each kind, in the order of their names; and that of the grants."""
    # Imported here: only this command needs it.
    from setpoint.kinds.field_docs import field_docs
    from setpoint.stores.kubernetes.crds import crd_for

    described: Mapping[GroupKind, DescribedType] = {**described_types(), REFERENCE_GRANT: ReferenceGrantType()}
    return {name: crd_for(described[name], field_docs) for name in sorted(described)}


def annotation_policies() -> Sequence[JsonObject]:
    """The admission policy that warns of annotations without effect on any of our kinds, and its binding."""
    from setpoint.deployment.annotation_policy import annotation_policy
    from setpoint.deployment.rbac import resource_of

    types, known = described_types(), definitions()
    return annotation_policy(types.values(), [resource_of(known[name]) for name in types])


def described_types() -> Mapping[GroupKind, ResourceType]:
    """Every kind and owner in the order of their names, to be described."""
    # No service is asked: the kinds describe themselves.
    google = GoogleClient(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS))
    return dict(sorted({**kinds_with(google, Clusters(), SystemClock(), {}), **owners_with({})}.items()))


def owners() -> Sequence[Owner]:
    """Every owner, to be described."""
    return tuple(owners_with({}).values())


def types_of_manifests(resource_types: Iterable[ResourceType]) -> ManifestTypes:
    """The manifests that a store of these kinds and owners takes: theirs, of the objects that owners make and read."""
    known = tuple(resource_types)
    related = [one for owner in known if isinstance(owner, Owner) for one in (*owner.makes, *owner.reads)]
    return manifest_types((*known, ReferenceGrantType(), *related, SECRETS))


def select_kinds(words: Sequence[str], known: Collection[GroupKind]) -> Collection[GroupKind]:
    """The kinds that `words` name, in any case, singular or plural; all of them for no words."""
    return [find_kind(word, known, "--kinds") for word in words] or known
