"""Every kind and owner that setpoint has, ours and those of plug-ins, and their CustomResourceDefinitions.

Without plug-ins unless they are asked for: what is generated into this repository depends on our own alone.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from setpoint.app.plugins import NO_PLUGINS, Plugins, installed_plugins
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_mapping import DeferredMapping, joined
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import AnyKind, DescribedType, ResourceType, unknown_kind
from setpoint.engine.owner import SECRETS, ObjectKind, Owner
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT, ReferenceGrantType
from setpoint.stores.manifest_types import KnownManifestTypes, ManifestTypes

# A kind or owner is imported when it is first asked for: a command handles resources of few kinds.
if TYPE_CHECKING:
    from setpoint.clients.google.client import GoogleClient
    from setpoint.kind.kind_context import KindContext
    from setpoint.kinds.gcp.shared.config_connector import TenantProjects
    from setpoint.kinds.kubernetes_object.clusters import Clusters

_STORAGE: Final = "storage.cnrm.cloud.google.com"
_SQL: Final = "sql.cnrm.cloud.google.com"
_OURS: Final = "setpoint.dev"
_TRUSTEE: Final = "confidentialcontainers.org"
# The kinds of the catalogue that are offered, by the first word of their group: those that recordings of Config
# Connector show to be right.
_OFFERED: Final = {
    "artifactregistry": ("ArtifactRegistryRepository",),
    "bigquery": ("BigQueryDataset", "BigQueryTable"),
    "certificatemanager": ("CertificateManagerCertificateMap", "CertificateManagerDNSAuthorization"),
    "compute": (
        *("ComputeAddress", "ComputeDisk", "ComputeFirewall", "ComputeHealthCheck", "ComputeManagedSSLCertificate"),
        *("ComputeNetwork", "ComputeRoute", "ComputeRouter", "ComputeSSLCertificate", "ComputeSSLPolicy"),
        *("ComputeSecurityPolicy", "ComputeSubnetwork"),
    ),
    "dns": ("DNSManagedZone",),
    "iam": ("IAMServiceAccount",),
    "kms": ("KMSKeyRing",),
    "logging": ("LoggingLogBucket", "LoggingLogMetric", "LoggingLogSink"),
    "pubsub": ("PubSubSchema", "PubSubSubscription", "PubSubTopic"),
    "run": ("RunService",),
    "secretmanager": ("SecretManagerSecret",),
    "spanner": ("SpannerInstance",),
    "vpcaccess": ("VPCAccessConnector",),
}
_CATALOGUED: Final[Collection[GroupKind]] = tuple(
    (f"{group}.cnrm.cloud.google.com", kind) for group, kinds in _OFFERED.items() for kind in kinds
)
# Kinds that no plug-in can offer: ours, and those of the objects that owners make and that every cluster has.
_TAKEN: Final[Collection[GroupKind]] = (
    (_STORAGE, "StorageBucket"),
    *((_SQL, name) for name in ("SQLInstance", "SQLDatabase", "SQLUser")),
    (_OURS, "KubernetesObject"),
    *((_TRUSTEE, name) for name in ("TrusteeConfig", "KbsConfig")),
    *_CATALOGUED,
    REFERENCE_GRANT,
    *(("", name) for name in ("Secret", "ConfigMap", "Namespace", "List")),
)


def all_plugins() -> Plugins:
    """The plug-ins that are installed beside this process."""
    return installed_plugins(_TAKEN)


def kinds_with(
    google: "GoogleClient", clusters: "Clusters", clock: Clock, environment: Mapping[str, str]
) -> Mapping[GroupKind, AnyKind]:
    """Every kind, with these clients; the environment may name the Google project of resources that name none."""

    def storage_bucket() -> AnyKind:
        from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind

        return StorageBucketKind(google, projects=_projects(environment))

    def sql_instance() -> AnyKind:
        from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind

        return SqlInstanceKind(google, projects=_projects(environment))

    def sql_database() -> AnyKind:
        from setpoint.kinds.gcp.sql_database import SqlDatabaseKind

        return SqlDatabaseKind(google, projects=_projects(environment))

    def sql_user() -> AnyKind:
        from setpoint.kinds.gcp.sql_user import SqlUserKind

        return SqlUserKind(google, projects=_projects(environment))

    def kubernetes_object() -> AnyKind:
        from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind

        return KubernetesObjectKind(clusters, clock)

    return DeferredMapping(
        {
            (_STORAGE, "StorageBucket"): storage_bucket,
            (_SQL, "SQLInstance"): sql_instance,
            (_SQL, "SQLDatabase"): sql_database,
            (_SQL, "SQLUser"): sql_user,
            (_OURS, "KubernetesObject"): kubernetes_object,
        }
    )


def catalogue_kinds(google: "GoogleClient", environment: Mapping[str, str]) -> Mapping[GroupKind, AnyKind]:
    """The kinds of Google's that are made from rows of the catalogue, each when it is first asked for."""

    def google_kind(name: GroupKind) -> AnyKind:
        from setpoint.catalogue.rows import facts_of
        from setpoint.kinds.gcp.generic.kind import GoogleKind

        return GoogleKind.of(facts_of(name), google, _projects(environment))

    return DeferredMapping({name: partial(google_kind, name) for name in _CATALOGUED})


def _projects(environment: Mapping[str, str]) -> "TenantProjects":
    from setpoint.kinds.gcp.shared.config_connector import TenantProjects

    return TenantProjects(environment=environment)


def owners_with(environment: Mapping[str, str]) -> Mapping[GroupKind, Owner]:
    """Every owner; some take the names of images from the environment."""

    def trustee_config() -> Owner:
        from setpoint.kinds.trustee.trustee_config.owner import TrusteeConfigOwner

        return TrusteeConfigOwner()

    def kbs_config() -> Owner:
        from setpoint.kinds.trustee.kbs_config.owner import KbsConfigOwner

        return KbsConfigOwner(environment)

    return DeferredMapping({(_TRUSTEE, "TrusteeConfig"): trustee_config, (_TRUSTEE, "KbsConfig"): kbs_config})


def definitions(plugins: Plugins = NO_PLUGINS) -> Mapping[GroupKind, JsonObject]:
    """The CustomResourceDefinition of each kind, in the order of their names; and that of the grants."""
    # Imported here: only this command needs it.
    from setpoint.kinds.field_docs import field_docs
    from setpoint.stores.kubernetes.crds import crd_for

    described: Mapping[GroupKind, DescribedType] = {**described_types(plugins), REFERENCE_GRANT: ReferenceGrantType()}
    return {name: crd_for(described[name], field_docs) for name in sorted(described)}


def annotation_policies(plugins: Plugins = NO_PLUGINS) -> Sequence[JsonObject]:
    """The admission policy that warns of annotations without effect on any of these kinds, and its binding."""
    from setpoint.deployment.annotation_policy import annotation_policy
    from setpoint.deployment.rbac import resource_of

    types, known = described_types(plugins), definitions(plugins)
    return annotation_policy(types.values(), [resource_of(known[name]) for name in types])


def described_types(plugins: Plugins = NO_PLUGINS) -> Mapping[GroupKind, ResourceType]:
    """Every kind and owner in the order of their names, to be described; without plug-ins that are broken."""
    from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
    from setpoint.clients.http import HttpClient
    from setpoint.kinds.kubernetes_object.clusters import Clusters

    # No service is asked: the kinds describe themselves.
    google = GoogleClient(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS))
    ours = {**kinds_with(google, Clusters(), SystemClock(), {}), **owners_with({})}
    return dict(sorted({**ours, **(_described(plugins) if plugins else {})}.items()))


def _described(plugins: Plugins) -> Mapping[GroupKind, ResourceType]:
    from setpoint.app.broken_types import BrokenKind, BrokenOwner

    types = plugin_types(plugins)
    return {name: one for name, one in types.items() if not isinstance(one, BrokenKind | BrokenOwner)}


def plugin_types(plugins: Plugins) -> Mapping[GroupKind, ResourceType]:
    """Every kind and owner of plug-ins, to be described; each is loaded when it is asked for."""
    kinds, owners = plugins.kinds(_without_services), plugins.owners(_without_services)
    types: Mapping[GroupKind, ResourceType] = joined(kinds, owners)
    return types


def catalogue_types() -> Mapping[GroupKind, ResourceType]:
    """The kinds of the catalogue that are offered, to be described; each is made when it is asked for."""
    from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
    from setpoint.clients.http import HttpClient

    types: Mapping[GroupKind, ResourceType] = catalogue_kinds(
        GoogleClient(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS)), {}
    )
    return types


def _without_services() -> "KindContext":
    from setpoint.kind.kind_context import KindContext

    return KindContext()


def known_names(plugins: Plugins = NO_PLUGINS) -> Collection[GroupKind]:
    """The names of every kind and owner that can be described; nothing is loaded."""
    return {*described_types(), *_CATALOGUED, *plugins.offered, *plugins.clashes}


def owners() -> Sequence[Owner]:
    """Every owner, to be described."""
    return tuple(owners_with({}).values())


def types_of_manifests(resource_types: Mapping[GroupKind, ResourceType]) -> ManifestTypes:
    """The manifests that a store of these kinds and owners takes: theirs, of the objects that owners make and read."""

    def related() -> list[ObjectKind]:
        owners = (one for one in resource_types.values() if isinstance(one, Owner))
        return [*(one for owner in owners for one in (*owner.makes, *owner.reads)), SECRETS]

    described: Mapping[GroupKind, DescribedType] = resource_types
    return KnownManifestTypes(joined(described, {REFERENCE_GRANT: ReferenceGrantType()}), related)


def select_kinds(words: Sequence[str], known: Collection[GroupKind]) -> Collection[GroupKind]:
    """The kinds that `words` name, in any case, singular or plural; all of them for no words."""
    return [find_kind(word, known, "--kinds") for word in words] or known


def find_kind(word: str, known: Collection[GroupKind], where: str = "") -> GroupKind:
    """The one of `known` that `word` names, in upper or lower case, singular or plural; ManifestInvalid for none."""
    found = named_kind(word, known)
    if found is None:
        raise unknown_kind(word, known, where)
    return found


def named_kind(word: str, known: Collection[GroupKind]) -> GroupKind | None:
    """The same; None for a word that names none. The version and group may follow the kind, as kubectl has it."""
    by_name = {name.lower(): (group, name) for group, name in known}
    name, dot, group = word.lower().partition(".")
    found = by_name.get(name) or by_name.get(name.removesuffix("s"))
    return None if found is None or (dot and not f".{group}".endswith(f".{found[0]}")) else found
