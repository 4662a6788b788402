"""Every kind and owner that setpoint has: ours, those of plug-ins and of the catalogue; and their definitions.

Without plug-ins unless they are asked for: what is generated into this repository depends on our own alone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from setpoint.app.plugins import NO_PLUGINS, Plugins, installed_plugins
from setpoint.core.unstructured import GroupKind, plural_name
from setpoint.core.values.deferred_mapping import DeferredMapping, joined
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import AnyKind, DescribedType, ResourceType, unknown_kind
from setpoint.engine.owner import SECRETS, ObjectKind, Owner, annotation_target
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT, ReferenceGrantType
from setpoint.errors import UserError
from setpoint.stores.manifest_types import KnownManifestTypes, ManifestTypes

# A kind or owner is imported when it is first asked for: a command handles resources of few kinds.
if TYPE_CHECKING:
    from setpoint.clients.google.client import GoogleClient
    from setpoint.kind.kind_context import KindContext
    from setpoint.kinds.gcp.iam.policies import PolicyClients
    from setpoint.kinds.gcp.shared.config_connector import TenantProjects
    from setpoint.kinds.kubernetes_object.clusters import Clusters

_STORAGE: Final = "storage.cnrm.cloud.google.com"
_SQL: Final = "sql.cnrm.cloud.google.com"
_IAM: Final = "iam.cnrm.cloud.google.com"
_OURS: Final = "setpoint.dev"
_TRUSTEE: Final = "confidentialcontainers.org"
# Kinds that no plug-in can offer: ours, and those of the objects that owners make and that every cluster has.
_OWN: Final[Collection[GroupKind]] = (
    (_STORAGE, "StorageBucket"),
    *((_SQL, name) for name in ("SQLInstance", "SQLDatabase", "SQLUser")),
    *((_IAM, name) for name in ("IAMPolicy", "IAMPartialPolicy", "IAMPolicyMember", "IAMServiceAccountKey")),
    (_OURS, "KubernetesObject"),
    *((_TRUSTEE, name) for name in ("TrusteeConfig", "KbsConfig")),
    REFERENCE_GRANT,
    *(("", name) for name in ("Secret", "ConfigMap", "Namespace", "List")),
)


def all_plugins() -> Plugins:
    """The plug-ins that are installed beside this process."""
    return installed_plugins((*_OWN, *_catalogued()))


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
            **_iam_kinds(google, clock, environment),
            (_OURS, "KubernetesObject"): kubernetes_object,
        }
    )


def _iam_kinds(
    google: "GoogleClient", clock: Clock, environment: Mapping[str, str]
) -> Mapping[GroupKind, Callable[[], AnyKind]]:
    def service_account_key() -> AnyKind:
        from setpoint.kinds.gcp.service_account_key.kind import ServiceAccountKeyKind

        return ServiceAccountKeyKind(google, _projects(environment), clock)

    return {**policy_kinds(google, environment), (_IAM, "IAMServiceAccountKey"): service_account_key}


def policy_kinds(google: "GoogleClient", environment: Mapping[str, str]) -> Mapping[GroupKind, Callable[[], AnyKind]]:
    """The kinds that live in the policies of other objects: those of one process write to them in turn."""

    @cache
    def clients() -> "PolicyClients":
        from setpoint.kinds.gcp.iam.policies import PolicyClients

        return PolicyClients()

    def policy() -> AnyKind:
        from setpoint.kinds.gcp.iam.policy import PolicyKind

        return PolicyKind(google, clients(), _projects(environment))

    def partial_policy() -> AnyKind:
        from setpoint.kinds.gcp.iam.partial_policy import PartialPolicyKind

        return PartialPolicyKind(google, clients(), _projects(environment))

    def policy_member() -> AnyKind:
        from setpoint.kinds.gcp.iam.policy_member import PolicyMemberKind

        return PolicyMemberKind(google, clients(), _projects(environment))

    return {
        (_IAM, "IAMPolicy"): policy,
        (_IAM, "IAMPartialPolicy"): partial_policy,
        (_IAM, "IAMPolicyMember"): policy_member,
    }


def catalogue_kinds(
    google: "GoogleClient", environment: Mapping[str, str], names: Collection[GroupKind] | None = None
) -> Mapping[GroupKind, AnyKind]:
    """The kinds of Google's that are made from rows of the catalogue, each when it is first asked for.

    All of them, or those that are named.
    """

    def google_kind(name: GroupKind) -> AnyKind:
        from setpoint.catalogue.rows import facts_of
        from setpoint.kinds.gcp.generic.kind import GoogleKind

        return GoogleKind.of(facts_of(name), google, _projects(environment))

    return DeferredMapping({name: partial(google_kind, name) for name in (_catalogued() if names is None else names)})


def _catalogued() -> Collection[GroupKind]:
    """The kinds that have a row of the catalogue; no row is read."""
    from setpoint.catalogue.index import kinds_by_group

    return kinds_by_group()


def catalogue_versions() -> Mapping[GroupKind, str]:
    """The version of each kind of the catalogue; no row is read."""
    from setpoint.catalogue.index import indexed_kinds

    return {name: one.version for name, one in indexed_kinds().items()}


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
    """The CustomResourceDefinition of each kind, in the order of their names, and that of the grants.

    Without those of the catalogue: see `definitions_of`.
    """
    return definitions_of({*described_types(plugins), REFERENCE_GRANT}, plugins)


def definitions_of(names: Collection[GroupKind], plugins: Plugins = NO_PLUGINS) -> Mapping[GroupKind, JsonObject]:
    """The CustomResourceDefinitions of these kinds, in the order of their names."""
    # Imported here: only this command needs it.
    from setpoint.kinds.field_docs import field_docs
    from setpoint.stores.kubernetes.crds import crd_for

    types = all_types(plugins)
    found: Mapping[GroupKind, DescribedType] = {
        name: ReferenceGrantType() if name == REFERENCE_GRANT else types[name] for name in sorted(names)
    }
    return {name: crd_for(one, field_docs) for name, one in found.items()}


def kinds_of_service(service: str) -> Collection[GroupKind]:
    """The kinds of the catalogue that are of a service of Google's, such as `pubsub`; UserError for another word."""
    from setpoint.catalogue.index import kinds_by_group

    by_kind = kinds_by_group()
    found = [name for name, its_service in by_kind.items() if its_service == service.lower()]
    if not found:
        known = ", ".join(sorted(set(by_kind.values())))
        raise UserError(f"--service: no kind of the catalogue is of {service!r}: there is {known}")
    return found


def annotation_policies(plugins: Plugins = NO_PLUGINS, more: Collection[GroupKind] = ()) -> Sequence[JsonObject]:
    """The admission policy that warns of annotations without effect on our kinds and on `more`, and its binding.

    A kind of the catalogue is covered once it is among `more`: before, its resources may be Config Connector's.
    """
    from setpoint.deployment.annotation_policy import annotation_policy
    from setpoint.deployment.rbac import resource_of

    ours = described_types(plugins)
    known = definitions_of({*ours, *more}, plugins)
    return annotation_policy(map(annotation_target, ours.values()), [resource_of(one) for one in known.values()])


def described_types(plugins: Plugins = NO_PLUGINS) -> Mapping[GroupKind, ResourceType]:
    """Every kind and owner in the order of their names, to be described; without plug-ins that are broken.

    Those of the catalogue are not among them: see `all_types`.
    """
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


def all_types(plugins: Plugins = NO_PLUGINS) -> Mapping[GroupKind, ResourceType]:
    """The same with those of the catalogue, each of which is made when it is asked for."""
    return joined(catalogue_types(), described_types(plugins))


def _without_services() -> "KindContext":
    from setpoint.kind.kind_context import KindContext

    return KindContext()


def known_names(plugins: Plugins = NO_PLUGINS) -> Collection[GroupKind]:
    """The names of every kind and owner that can be described; nothing is loaded."""
    return {*described_types(), *_catalogued(), *plugins.offered, *plugins.clashes}


def owners() -> Sequence[Owner]:
    """Every owner, to be described."""
    return tuple(owners_with({}).values())


def types_of_manifests(resource_types: Mapping[GroupKind, ResourceType]) -> ManifestTypes:
    """The manifests that a store of these kinds and owners takes: theirs, of the objects that owners make and read."""

    def related() -> list[ObjectKind]:
        catalogued = _catalogued()
        types = (resource_types[name] for name in resource_types if name not in catalogued)
        owners = (one for one in types if isinstance(one, Owner))
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
    if found is None and name.endswith("s"):
        found = next((one for one in known if plural_name(one[1]) == name), None)
    return None if found is None or (dot and not f".{group}".endswith(f".{found[0]}")) else found
