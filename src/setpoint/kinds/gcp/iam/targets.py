"""Objects with a policy: which kinds have one, how the reference in a spec names the object, and the calls for it."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import KindFacts, MethodFacts, facts_of
from setpoint.clients.google.calls import GoogleApi, GoogleCall, GoogleService
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.kind import Location, Reference, ResolvedReferences, match_location
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import UserError
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.generic.equivalence import relative_name
from setpoint.kinds.gcp.generic.placement import recorded_location, templates_of, variables_of
from setpoint.kinds.gcp.generic.requests import object_call
from setpoint.kinds.gcp.generic.spec_types import group_of
from setpoint.kinds.gcp.iam.grants import POLICY_VERSION
from setpoint.kinds.gcp.iam.spec import PolicyTargetReference
from setpoint.kinds.gcp.shared.config_connector import TenantProjects

AT: Final = "spec.resourceRef"
_GET, _SET = "getIamPolicy", "setIamPolicy"
BUCKET: Final = "StorageBucket"
_ORGANIZATION: Final = "Organization"
_RESOURCE_MANAGER: Final = GoogleApi("cloudresourcemanager.googleapis.com", "/v3")
# A bucket is named without its project; this is how Google's own names of buckets begin.
BUCKET_PREFIX: Final = "projects/_/buckets/"
_BUCKET_NAMES: Final = re.compile(r"(?:gs://|(?:projects/[^/]+/buckets/|b/))?([^/]+)")
_LOCATION: Final = re.compile(r"(?P<name>.+)/iamPolicy/(?P<kind>\w+)(?: (?P<part>.+))?")


@dataclass(frozen=True, slots=True)
class PolicyTarget:
    """An object with a policy: its kind and its relative name."""

    kind: str
    name: str

    def location(self, part: str = "") -> Location:
        """The location of the policy, or of a part of it."""
        return Location(f"{self.name}/iamPolicy/{self.kind}{' ' if part else ''}{part}")

    @property
    def project(self) -> str:
        """The project of the object; its whole name where it is in none."""
        first, _, rest = self.name.partition("/")
        return rest.partition("/")[0] if first == "projects" else self.name

    @property
    def bucket(self) -> str:
        """The name of the bucket, if it is one; else empty."""
        return self.name.removeprefix(BUCKET_PREFIX) if self.kind == BUCKET else ""

    def reading(self) -> tuple[GoogleCall, Json]:
        """The call that reads the policy, and the body if it is sent by POST; else None."""
        options = {"requestedPolicyVersion": POLICY_VERSION}
        if self.bucket:
            return GoogleCall(
                GoogleService.STORAGE, ("b", self.bucket, "iam"), _query("optionsRequestedPolicyVersion")
            ), None
        if self.kind == _ORGANIZATION:
            return GoogleCall(_RESOURCE_MANAGER, tuple(self.name.split("/")), method=_GET), {"options": options}
        row = _row_of(self.kind)
        method = row.other_methods[_GET]
        named = next((one for one in method.query if one.endswith("equestedPolicyVersion")), "")
        call = _custom(row, Location(self.name), method, _GET, _query(named))
        if method.verb == "GET":
            return call, None
        return call, {} if named else {"options": options}

    def writing(self, policy: Mapping[str, Any], mask: str = "") -> tuple[str, GoogleCall, Json]:
        """The method, the call and the body that set the policy."""
        if self.bucket:
            return "PUT", GoogleCall(GoogleService.STORAGE, ("b", self.bucket, "iam")), dict(policy)
        body: Json = {"policy": dict(policy), **({"updateMask": mask} if mask else {})}
        if self.kind == _ORGANIZATION:
            return "POST", GoogleCall(_RESOURCE_MANAGER, tuple(self.name.split("/")), method=_SET), body
        row = _row_of(self.kind)
        return "POST", _custom(row, Location(self.name), row.other_methods[_SET], _SET), body


def _query(name: str) -> Mapping[str, str]:
    return {name: str(POLICY_VERSION)} if name else {}


def _custom(
    row: KindFacts, location: Location, method: MethodFacts, name: str, query: Mapping[str, str] | None = None
) -> GoogleCall:
    """A method of the object's own: after a colon or a slash, as its path has it."""
    call = object_call(row, location, query)
    if method.path.endswith(f":{name}"):
        return GoogleCall(call.service, call.parts, call.query, method=name)
    return GoogleCall(call.service, (*call.parts, name), call.query)


@cache
def _row_of(kind: str) -> KindFacts:
    """The row of a kind that has a policy; UserError for any other: a status may hold anything."""
    found = _find_row(kind)
    if found is None:
        raise UserError(f"{kind} has no policy: correct status.setpoint.location, or remove it")
    return found


@cache
def _find_row(kind: str) -> KindFacts | None:
    name = next((one for one in kinds_by_group() if one[1] == kind), None)
    row = None if name is None else facts_of(name)
    return row if row is not None and _GET in row.other_methods and _SET in row.other_methods else None


def has_policy(kind: str) -> bool:
    """Whether objects of the kind have a policy."""
    return kind in (BUCKET, _ORGANIZATION) or _find_row(kind) is not None


def target_at(location: Location) -> tuple[PolicyTarget, str]:
    """The object of a location, and the part of its policy; UserError for a location of another kind."""
    found = match_location(_LOCATION, location)
    return PolicyTarget(found["kind"], found["name"]), found["part"] or ""


# --- The reference in a spec ------------------------------------------------------------------------------------------


def check_target(ref: PolicyTargetReference, resource: Resource) -> None:
    """ManifestInvalid for a reference to an object that has no policy, or that is named in two ways or none."""
    if not has_policy(ref.kind):
        known = " its access is a field of its own spec;" if ref.kind in ("BigQueryDataset", "SQLInstance") else ""
        problem = f" is {ref.kind!r}, and objects of that kind have no IAM policy:{known} grant the role on its project"
        raise field_invalid(resource, f"{AT}.kind", problem)
    group = "" if ref.kind == _ORGANIZATION else group_of(ref.kind)
    given = (ref.apiVersion or "").partition("/")[0]
    if given and group and given != group:
        raise field_invalid(resource, f"{AT}.apiVersion", f" is {ref.apiVersion!r}: {ref.kind} is of {group}")
    if ref.name and ref.external:
        raise field_invalid(resource, AT, " needs name or external, and not both: write one of them")
    if ref.name and ref.kind == _ORGANIZATION:
        raise field_invalid(resource, f"{AT}.name", " is of no resource: write external, such as organizations/123")
    if not ref.name and not ref.external and ref.kind != "Project":
        raise field_invalid(resource, AT, " needs name or external: write one of them")


def target_dependency(ref: PolicyTargetReference, resource: Resource) -> Reference | None:
    """The resource that has the policy; None for an object that is named by itself."""
    check_target(ref, resource)
    if not ref.name:
        return None
    target = ResourceRef(group_of(ref.kind), ref.kind, ref.namespace or resource.ref.namespace, ref.name)
    return Reference(AT, target)


def target_of(
    ref: PolicyTargetReference, resource: Resource, resolved: ResolvedReferences, projects: TenantProjects
) -> PolicyTarget:
    """The object that has the policy. ProjectRefused for one that is not in the project of the tenant."""
    check_target(ref, resource)
    found = resolved.resources.get(AT)
    name = _external(ref, resource, projects) if found is None else recorded_location(found)
    if ref.kind == BUCKET:
        target = PolicyTarget(BUCKET, f"{BUCKET_PREFIX}{name.rpartition('/')[2]}")
        if found is not None:
            projects.require(PolicyTarget(BUCKET, name).project, resource, AT)
        return target
    target = PolicyTarget(ref.kind, name)
    projects.require(target.project, resource, AT)
    return target


def _external(ref: PolicyTargetReference, resource: Resource, projects: TenantProjects) -> str:
    """The relative name that a reference says itself: in full, as a link, or the id alone where that is enough."""
    if not ref.external:
        return f"projects/{projects.of(resource)}"
    text = ref.external
    if ref.kind == BUCKET:
        found = _BUCKET_NAMES.fullmatch(relative_name(text) if "googleapis.com" in text else text)
        if found is None:
            raise field_invalid(resource, f"{AT}.external", f" is {text!r}: write the name of a bucket")
        return found[1]
    templates = ("organizations/{organization}",) if ref.kind == _ORGANIZATION else templates_of(_row_of(ref.kind))
    text = relative_name(text).strip("/")
    if "/" not in text:
        text = _completed(text, templates[0], resource, projects)
    if not any(_fits(text, one) for one in templates):
        problem = f" is {ref.external!r}: write {' or '.join(templates)}"
        raise field_invalid(resource, f"{AT}.external", problem)
    return text


def _completed(text: str, template: str, resource: Resource, projects: TenantProjects) -> str:
    """The name of an object by its id alone, if nothing but the project is missing."""
    *others, last = variables_of(template)
    if others not in ([], ["project"]):
        return text
    filled = template.replace(f"{{{last}}}", text)
    return filled.replace("{project}", projects.of(resource)) if others else filled


def _fits(text: str, template: str) -> bool:
    """Whether a name is of the template: the same words, and something for each variable."""
    words, parts = template.split("/"), text.split("/")
    if len(words) != len(parts):
        return False
    return all(part and (word.startswith("{") or word == part) for word, part in zip(words, parts, strict=True))
