"""Config Connector's conventions: project, resource ID, labels, references, names that are invalid or taken."""

import re
from collections.abc import Awaitable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Final

from msgspec import Struct, to_builtins

from setpoint.clients.google.calls import PROJECT_ADVICE, recorded_elsewhere
from setpoint.clients.google.client import GoogleTenant
from setpoint.clients.url_path import has_dot_segment
from setpoint.core.overlay import Declared
from setpoint.core.plan import ProjectSource, ResolvedProject
from setpoint.core.schema.checks import AnyOf, Check, Given, Not, NotEmpty, Predicate
from setpoint.core.schema.constraints import Matches
from setpoint.core.schema.policy import Rule
from setpoint.core.unstructured import plural_name
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, JsonObject
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import Absent, CrdDetails, LiveObservation, Reference, ResolvedReferences
from setpoint.engine.management import MANAGED_LABEL
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import location_in
from setpoint.engine.tenancy.tenants import PROJECT_ID, PROJECT_PATTERN, SHARED_PROJECTS, Tenant
from setpoint.errors import OutputMissing, ProjectRefused, RemoteConflict, RemoteRefused
from setpoint.kind.spec_references import NAME_OR_EXTERNAL, ResourceReference
from setpoint.kind.typed_spec import field_invalid

PROJECT_ANNOTATION: Final = PROJECT_ID
# The project of resources that name none, outside of a cluster: the variable that Google's own tools read.
PROJECT_VARIABLE: Final = "GOOGLE_CLOUD_PROJECT"
# The namespace of resources that name none: it does not say which project is meant.
_ASSUMED_NAMESPACE: Final = "default"
# For the `__checks__` of a spec with a resourceID.
RESOURCE_ID_CHECK: Final = Check(
    AnyOf(Not(Given("resourceID")), NotEmpty("resourceID")),
    "write the name in the service, or leave it out",
    "resourceID",
)
# Equal references: a service's name may be short or a full link; an external object may have become a resource.
_SAME_REFERENCE: Final = """
    (!has(self.name) || !has(oldSelf.name) || self.name == oldSelf.name)
    && (!has(self.external) || !has(oldSelf.external)
      || self.external.find('[^/:]*$') == oldSelf.external.find('[^/:]*$'))
"""
_LABELS: Final = Path(("metadata", "labels"))
_NAME: Final = Path(("metadata", "name"))
_RESOURCE_ID: Final = Path(("spec", "resourceID"))
# For fields of Google's APIs.
GOOGLE_DURATION: Final = Matches("[0-9]+(?:[.][0-9]{1,9})?s", "it in seconds, as 2592000s", 64)
TIMESTAMP: Final = Matches(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})",
    "a time such as 2026-01-31T15:00:00Z",
    64,
)
LOCATION_NAME: Final = Matches(
    "[A-Za-z][A-Za-z0-9-]*", "the name of a place, such as europe-west1: letters, digits and '-'", 63
)
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4: Final = rf"(?:{_OCTET}[.]){{3}}{_OCTET}"
_MASK: Final = "/(?:3[0-2]|[12]?[0-9])"
IPV4_RANGE: Final = Matches(
    f"{_IPV4}(?:{_MASK})?", "addresses of IPv4 in CIDR notation, such as 10.0.0.0/8", 64, or_empty=False
)
IP_RANGE: Final = Matches(
    f"{_IPV4}{_MASK}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])",
    "addresses in CIDR notation, such as 10.0.0.0/8",
    64,
    or_empty=False,
)


class SpecReference(ResourceReference, frozen=True):
    """A reference in a spec of Config Connector's: the name in the service may be a full link."""

    __unchanged__: ClassVar = _SAME_REFERENCE


def definition_for(kind: str, outputs: type[Struct], description: str) -> CrdDetails:
    """The CRD details of a kind, with the plural and the short names of Config Connector."""
    name, plural = kind.lower(), plural_name(kind)
    return CrdDetails(description, outputs, (f"gcp{name}", f"gcp{plural}"), ("gcp",), plural)


@dataclass(frozen=True, slots=True)
class ReferenceTarget:
    """The kind of resource that a reference refers to."""

    group: str
    kind: str


@dataclass(frozen=True, slots=True)
class GoogleNameRule:
    """The names that a service allows, as far as it documents them."""

    constraint: Matches

    @property
    def advice(self) -> str:
        """What to write."""
        return self.constraint.advice

    def allows(self, name: str) -> bool:
        """Whether `name` fits. A name that would change the path of a URL, or has no bytes, never does."""
        return name != "" and self.constraint.allows(name) and not has_dot_segment(name) and not _SURROGATE.search(name)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
PROJECT_NAME: Final = GoogleNameRule(
    Matches(PROJECT_PATTERN, "the ID of a project: lower-case letters, digits and '-'")
)


@lru_cache(maxsize=1024)
def _is_project(name: str) -> bool:
    """Whether a project can have this name. Asked in every step, of few projects."""
    return PROJECT_NAME.allows(name)


BUCKET_NAME: Final = GoogleNameRule(
    Matches(
        "[a-z0-9](?:(?:[.]?[a-z0-9_-])+[.]?|[.])[a-z0-9]",
        "the name of a bucket: 3 to 63 lower-case letters, digits, '-' and '_', a letter or digit at both ends, longer "
        "with dots between such parts; no IP address, and neither goog at its beginning nor google in it",
        222,
        reserved="goog.*|.*google.*|.*[^.]{64}.*|[0-9]+(?:[.][0-9]+){3}",
    )
)
INSTANCE_NAME: Final = GoogleNameRule(
    Matches(
        "[a-z](?:[a-z0-9-]*[a-z0-9])?",
        "the name of an instance: lower-case letters, digits and '-', a letter first, no '-' at its end",
        98,
    )
)
# Databases, users and networks: engines allow nearly every character.
ANY_NAME: Final = GoogleNameRule(Matches(r"[^\x00-\x1f\x7f-\x9f]+", "a name without control characters, '.' and '..'"))


@dataclass(frozen=True, slots=True)
class NameInService(Predicate):
    """The service allows the name of the resource, or spec.resourceID says another.

    In a cluster, an object with a status is accepted: its name cannot change, and its status has to be written.
    """

    name: GoogleNameRule

    @property
    def cel(self) -> str:
        """See Predicate."""
        own = self.name.constraint.cel("self.metadata.name")
        length = f"self.metadata.name.size() <= {self.name.constraint.max_length}"
        return f"has(self.status) || (has(self.spec) && has(self.spec.resourceID)) || ({own} && {length})"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        if get_at(value, _RESOURCE_ID) not in (None, MISSING):
            return True
        name = get_at(value, _NAME)
        return not isinstance(name, str) or self.name.allows(name)


def name_check(rule: GoogleNameRule) -> Check:
    """For the `__checks__` of the tree of a kind whose objects have such names."""
    return Check(NameInService(rule), f"write {rule.advice}, or set spec.resourceID", "metadata.name")


# --- Projects ---------------------------------------------------------------------------------------------------------

_IN_PROJECT: Final = re.compile(r"projects/([^/]+)/.+")
_NETWORK: Final = re.compile(r"(?:projects/([^/]+)/)?(?:(?:global/)?networks/)?[A-Za-z0-9_.-]+")
# `i`, `p:i`, `projects/p/instances/i`, or a link that ends so.
_INSTANCE: Final = re.compile(
    rf"(?:(?:https://[a-z0-9.-]+/(?:[a-z0-9]+/)*)?projects/({PROJECT_PATTERN})/instances/|({PROJECT_PATTERN}):)?[a-z0-9-]+"
)


@dataclass(frozen=True, slots=True)
class TenantProjects:
    """The Google projects of one tenant's resources. Without a tenant, resources may name any project.

    A KMS key may be in any project: the service encrypts with it on behalf of the tenant's own project, and IAM decides
    about that.
    """

    tenant: Tenant | None = None
    # Read where a resource names no project, and there is no tenant.
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def caller(self) -> GoogleTenant:
        """On whose behalf requests are sent."""
        return GoogleTenant() if self.tenant is None else GoogleTenant(self.tenant.google_account, self.tenant.project)

    def of(self, resource: Resource) -> str:
        """The project of a resource of the tenant; see `resolve`."""
        return self.resolve(resource).project

    def resolve(self, resource: Resource) -> ResolvedProject:
        """The project of a resource of the tenant, and where it is named.

        ManifestInvalid when it is named nowhere, ProjectRefused for an annotation that names another project than the
        tenant's.
        """
        found = self.find(resource)
        if found is None:
            raise field_invalid(
                resource,
                f"metadata.annotations[{PROJECT_ANNOTATION!r}]",
                f" is missing: write the ID of the Google project there; or put the resource into a namespace that is "
                f"named like the project; or set the environment variable {PROJECT_VARIABLE}",
            )
        at = _PROJECT_FIELDS.get(found.source, "metadata.namespace")
        if not _is_project(found.project):
            raise field_invalid(resource, at, f" is {found.project!r}: write {PROJECT_NAME.advice}")
        self.require(found.project, resource, at)
        return found

    def resolve_target(self, at: str, target: Resource, resource: Resource) -> ResolvedProject:
        """The project of a resource that the field `at` of the tenant's `resource` refers to.

        That of another namespace has its project on record: which one that namespace has, only its own steps know.
        """
        tenant = self.tenant
        if tenant is None or target.ref.namespace == tenant.namespace:
            return replace(self.resolve(target), source=ProjectSource.REFERENCE)
        project = _recorded_project(target) or self.named_by(target)
        self.require(project, resource, at)
        return ResolvedProject(project, ProjectSource.REFERENCE)

    def named_by(self, target: Resource) -> str:
        """The project that a resource of any namespace is in, as far as it says so; none is refused to a tenant."""
        found = self.find(target)
        return self.of(target) if found is None else found.project

    def find(self, target: Resource) -> ResolvedProject | None:
        """The project that a resource of any namespace is in, as far as it says so; None where none is named.

        An annotation comes first. Without a tenant, the project on record stands whatever is said elsewhere: nothing
        moves because of the environment. Then, as Config Connector has it, that of the namespace.
        """
        named, tenant = target.annotations.get(PROJECT_ANNOTATION), self.tenant
        if named:
            return ResolvedProject(named, ProjectSource.ANNOTATION)
        if tenant is None:
            return self._find_without_tenant(target)
        namespace = target.ref.namespace
        given = (tenant.project or tenant.default_project) if namespace == tenant.namespace else None
        if given and given != namespace:
            return ResolvedProject(given, ProjectSource.NAMESPACE_ANNOTATION)
        return ResolvedProject(namespace, ProjectSource.NAMESPACE)

    def _find_without_tenant(self, target: Resource) -> ResolvedProject | None:
        recorded, namespace = _recorded_project(target), target.ref.namespace
        if namespace != _ASSUMED_NAMESPACE and recorded in (None, namespace):
            return ResolvedProject(namespace, ProjectSource.NAMESPACE)
        if recorded is not None:
            return ResolvedProject(recorded, ProjectSource.RECORD)
        named = self.environment.get(PROJECT_VARIABLE)
        return ResolvedProject(named, ProjectSource.ENVIRONMENT) if named else None

    def require_own(self, resource: Resource) -> None:
        """ProjectRefused for a resource of the tenant that names another project by its annotation."""
        if self.tenant is not None:
            self.of(resource)

    def require(self, project: str, resource: Resource, at: str) -> None:
        """ProjectRefused when the field `at` names a project that is not the tenant's."""
        tenant = self.tenant
        if tenant is not None and tenant.project not in (None, project):
            raise ProjectRefused(
                f"{resource.ref}: {at} names the project {project!r}, and resources of the namespace "
                f"{tenant.namespace} are in the project {tenant.project!r}; {PROJECT_ADVICE}"
            )

    def require_recorded(self, project: str) -> None:
        """ProjectRefused when an object on record is not in the project of the tenant."""
        if self.tenant is not None and self.tenant.project not in (None, project):
            raise recorded_elsewhere(project, self.tenant.project or "")

    def require_instance(self, external: str, resource: Resource, at: str) -> None:
        """ProjectRefused for an instance of another project, and for one whose project cannot be told."""
        found = _INSTANCE.fullmatch(external)
        if found is None:
            self.require(external, resource, at)
        elif found[1] or found[2]:
            self.require(found[1] or found[2], resource, at)

    def require_network(self, link: str, resource: Resource, at: str) -> None:
        """ProjectRefused for a network of a project that is neither the tenant's nor shared with it."""
        tenant = self.tenant
        if tenant is None or tenant.project is None:
            return
        found = _NETWORK.fullmatch(link)
        self.require_shared((found[1] or tenant.project) if found else link, resource, at, "a network")

    def require_shared(self, project: str, resource: Resource, at: str, what: str = "an object") -> None:
        """ProjectRefused for an object of a project that is neither the tenant's nor shared with it."""
        tenant = self.tenant
        if tenant is None or tenant.project in (None, project) or project in tenant.shared_projects:
            return
        raise ProjectRefused(
            f"{resource.ref}: {at} names {what} of the project {project!r}, and resources of the namespace "
            f"{tenant.namespace} may name those of {tenant.project!r}; an administrator lists further projects in "
            f"the annotation {SHARED_PROJECTS} of the Namespace"
        )


ANY_PROJECT: Final = TenantProjects()
# The field that an invalid project is reported at; else it is the namespace.
_PROJECT_FIELDS: Final = {
    ProjectSource.ANNOTATION: f"metadata.annotations[{PROJECT_ANNOTATION!r}]",
    ProjectSource.RECORD: "status.setpoint.location",
    ProjectSource.ENVIRONMENT: PROJECT_VARIABLE,
}


def _recorded_project(resource: Resource) -> str | None:
    """The project of the location on record."""
    found = _IN_PROJECT.fullmatch(location_in(resource.status) or "")
    return None if found is None else found[1]


def resource_id(resource: Resource, rule: GoogleNameRule = ANY_NAME) -> str:
    """The object's name in its service: spec.resourceID, or else metadata.name. ManifestInvalid if not allowed."""
    found = resource.spec.get("resourceID") if resource.mentions("resourceID") else None
    if found is not None and not (isinstance(found, str) and found):
        raise field_invalid(resource, "spec.resourceID", " is not a name: write text, or leave it out")
    name = found or resource.ref.name
    if not rule.allows(name):
        at, more = ("spec.resourceID", "") if found else ("metadata.name", ", or set spec.resourceID")
        raise field_invalid(resource, at, f" is {name!r}: write {rule.advice}{more}")
    return name


def google_labels(resource: Resource) -> Mapping[str, str]:
    """The labels to send, without those of Kubernetes tools: keys with exactly one slash."""
    return {**{key: value for key, value in resource.labels.items() if key.count("/") != 1}, MANAGED_LABEL: "true"}


def without_managed_label(declared: Declared, live: JsonObject) -> Declared:
    """Without the managed-by label, where unspecified fields are ignored and the live object lacks the label."""
    labels, live_labels = get_at(declared.tree, _LABELS), get_at(live, _LABELS)
    if declared.policy.unspecified is not Rule.IGNORED or not isinstance(labels, Mapping):
        return declared
    if isinstance(live_labels, Mapping) and MANAGED_LABEL in live_labels:
        return declared
    declared_labels = {key: value for key, value in labels.items() if key != MANAGED_LABEL}
    return replace(declared, tree={**declared.tree, "metadata": {"labels": declared_labels}})


def reference_at(at: str, ref: SpecReference, resource: Resource, target: ReferenceTarget) -> Reference | None:
    """The dependency for the reference in the field `at`; None for an external object."""
    if not NAME_OR_EXTERNAL.rule.holds(to_builtins(ref)):
        raise field_invalid(resource, at, " needs name or external, and not both: write one of them")
    if not ref.name:
        return None
    return Reference(at, ResourceRef(target.group, target.kind, ref.namespace or resource.ref.namespace, ref.name))


def self_link(at: str, ref: SpecReference, resolved: ResolvedReferences) -> str:
    """The resolved reference in the field `at`: the object's name in its service."""
    if ref.external:
        return ref.external
    found = get_at(resolved.resources[at].document, Path(("status", "selfLink")))
    if not isinstance(found, str):
        target = resolved.resources[at].ref
        raise OutputMissing(f"reference {target} is not ready: it has no status.selfLink", target, "status.selfLink")
    return found


def relative_link(link: str) -> str:
    """A link without host and API version: `projects/p/…`; a text without `/projects/` is returned unchanged."""
    _, found, rest = link.partition("/projects/")
    return f"projects/{rest}" if found else link


def without_empty(part: Mapping[str, Json]) -> dict[str, Json]:
    """A mapping without nulls, empty lists and empty text."""
    return {name: value for name, value in part.items() if value not in (None, "", [])}


async def name_taken_error(
    conflict: RemoteConflict, observation: Awaitable[LiveObservation]
) -> RemoteConflict | RemoteRefused:
    """The error for a create whose name is taken: a conflict if the object can be read, and adopted; else a refusal."""
    if isinstance(await observation, Absent):
        return RemoteRefused(
            f"{conflict}. Nothing can be seen under that name: it was deleted a short time ago, or belongs to another "
            "project. Wait, or choose another spec.resourceID"
        )
    return conflict
