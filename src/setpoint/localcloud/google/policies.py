"""IAM policies: of every object of the catalogue, and of projects, folders, organizations and billing accounts."""

import re
from typing import Final

from setpoint.localcloud import api_errors
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.google import api_words
from setpoint.localcloud.google.collections import ApiPath, collection_of
from setpoint.localcloud.google.members import ApiMember, MemberType
from setpoint.localcloud.google.outputs import ObjectAddress, digest
from setpoint.localcloud.google.reads import CatalogueServices
from setpoint.localcloud.google.validation import invalid_argument, validated
from setpoint.localcloud.routing import ServiceCall
from setpoint.localcloud.schema import JsonBody

_METHODS: Final = ("getIamPolicy", "setIamPolicy", "testIamPermissions")
_CONTAINERS: Final = frozenset({"projects", "folders", "organizations", "billingAccounts"})
_EMPTY: Final[JsonBody] = {"etag": "ACAB"}
_ROLE: Final = re.compile(r"(?:(?:projects|organizations)/[^/]+/)?roles/[\w.]+")
_MEMBER: Final = re.compile(
    r"allUsers|allAuthenticatedUsers"
    r"|(?:deleted:)?(?:user|group|serviceAccount):[^\s:@]+@[^\s:]+(?:\?uid=\d+)?|serviceAccount:[^\s]+\.svc\.id\.goog\[.+\]"
    r"|domain:[^\s:]+|(?:projectOwner|projectEditor|projectViewer):[^\s:]+"
    r"|(?:deleted:)?principal(?:Set)?://\S+"
)
_VERSION_WITH_CONDITIONS: Final = 3
_DEFAULT_MASK: Final = "bindings,etag"
_BASIC_ROLES: Final = ("roles/owner", "roles/editor", "roles/viewer")
_ANYONE: Final = ("allUsers", "allAuthenticatedUsers")
# Members that are named by an e-mail address or a domain are kept in lower case.
_LOWER_CASE: Final = re.compile(r"(?:deleted:)?(?:user|group|serviceAccount|domain):[^\[]*")
_TEXT: Final = ApiMember(MemberType.TEXT)
_CONDITION: Final = ApiMember(
    MemberType.OBJECT,
    members=dict.fromkeys(("title", "description", "expression", "location"), _TEXT),
)
_BINDING: Final = ApiMember(
    MemberType.OBJECT,
    members={
        "role": _TEXT,
        "members": ApiMember(MemberType.LIST, element=_TEXT),
        "condition": _CONDITION,
        "bindingId": _TEXT,
    },
)
_POLICY: Final = ApiMember(
    MemberType.OBJECT,
    members={
        "version": ApiMember(MemberType.INTEGER),
        "bindings": ApiMember(MemberType.LIST, element=_BINDING),
        "auditConfigs": ApiMember(MemberType.LIST, element=ApiMember(MemberType.ANY)),
        "etag": ApiMember(MemberType.BYTES),
        "kind": ApiMember(MemberType.ANY, output_only=True),
        "resourceId": ApiMember(MemberType.ANY, output_only=True),
    },
)
_REQUEST: Final = ApiMember(MemberType.OBJECT, members={"policy": _POLICY, "updateMask": _TEXT})


def answer_policy(services: CatalogueServices, call: ServiceCall, api: str | None, path: ApiPath) -> JsonBody | None:
    """The response to a method on a policy; None when the path is no such method."""
    method, resource = _method(path)
    if not method:
        return None
    key = _key(services, api, resource)
    if method == "iam":
        method = {"GET": "getIamPolicy", "PUT": "setIamPolicy"}.get(call.method, "")
    match method:
        case "getIamPolicy":
            return _shown(services.state.policies.get(key, _EMPTY), _requested_version(call))
        case "setIamPolicy":
            body = call.body if path.segments[-1] != "iam" else {"policy": call.body}
            return _set(services, key, body)
        case "testIamPermissions":
            asked = call.body.get("permissions", []) if isinstance(call.body, dict) else []
            return {"permissions": asked}
        case _:
            return None


def _method(path: ApiPath) -> tuple[str, ApiPath]:
    last = path.segments[-1]
    before, _, custom = last.rpartition(":")
    if custom in _METHODS and before:
        return custom, ApiPath(path.prefix, path.version, (*path.segments[:-1], before))
    if len(path.segments) > 2 and (last in _METHODS or (last == "iam" and path.prefix == "storage")):
        return last, ApiPath(path.prefix, path.version, path.segments[:-1])
    return "", path


def _key(services: CatalogueServices, api: str | None, resource: ApiPath) -> str:
    """The key of the object that has the policy; refuses one that does not exist."""
    name = resource.name
    if len(resource.segments) == 2 and resource.segments[0] in _CONTAINERS:
        return f"cloudresourcemanager/{name}"
    known = [f"{api}/{name}"] if api else [key for key in services.state.objects if key.partition("/")[2] == name]
    for key in known:
        if key in services.state.objects:
            return key
    if resource.prefix == "storage" and services.exists_elsewhere(name):
        return f"storage/{name}"
    collection = collection_of(api, resource)
    if collection is None:
        raise api_errors.not_found()
    raise api_words.in_form_of(collection.api, api_words.not_found(ObjectAddress(collection, name)))


def _requested_version(call: ServiceCall) -> int:
    for name in ("options.requestedPolicyVersion", "optionsRequestedPolicyVersion"):
        if text := call.query.get(name):
            return _version(text)
    options = call.body.get("options") if isinstance(call.body, dict) else None
    return _version(options.get("requestedPolicyVersion", 1)) if isinstance(options, dict) else 1


def _version(given: object) -> int:
    if str(given) not in ("0", "1", "2", "3"):
        raise invalid_argument(f"Invalid requested policy version: {given}.")
    return int(str(given))


def _shown(policy: JsonBody, version: int) -> JsonBody:
    """The policy at a version: before the third, the role of a binding says that it has a condition."""
    bindings = policy.get("bindings", [])
    if version >= _VERSION_WITH_CONDITIONS or not any("condition" in one for one in bindings):
        return policy
    shown = [
        {"role": f"{one['role']}_withcond_{digest(one['condition']).encode().hex()[:20]}", "members": one["members"]}
        if "condition" in one
        else one
        for one in bindings
    ]
    return {**policy, "version": 1, "bindings": shown}


def _set(services: CatalogueServices, key: str, body: object) -> JsonBody:
    request = validated(_REQUEST, body)
    policy = request.get("policy")
    if not isinstance(policy, dict):
        raise invalid_argument("Required field 'policy' not specified.")
    mask = _mask(request)
    before = services.state.policies.get(key, _EMPTY)
    if policy.get("etag") not in (None, "", before["etag"]):
        raise _concurrent_change()
    bindings = _checked_bindings(policy if "bindings" in mask else before)
    version = policy.get("version") or 1
    if version not in (1, _VERSION_WITH_CONDITIONS):
        raise invalid_argument(f"Policy version {version} is invalid.")
    if version != _VERSION_WITH_CONDITIONS and any("condition" in one for one in (*bindings, *_conditions(before))):
        raise invalid_argument("The policy has conditions: its version must be 3, and must be asked for as 3.")
    services.state.count += 1
    kept = _VERSION_WITH_CONDITIONS if _conditions({"bindings": bindings}) else 1
    after: JsonBody = {"version": kept, "etag": digest(key, services.state.count)}
    if bindings:
        after = {**after, "bindings": bindings}
    audit = (policy if "auditConfigs" in mask else before).get("auditConfigs")
    if audit:
        after = {**after, "auditConfigs": audit}
    services.state.policies[key] = after
    return after


def _mask(request: JsonBody) -> frozenset[str]:
    """The members of the policy that a request changes."""
    names = [one.strip() for one in str(request.get("updateMask") or _DEFAULT_MASK).split(",")]
    unknown = [one for one in names if one not in _POLICY.members]
    if unknown:
        raise invalid_argument(f"Invalid field mask: {', '.join(unknown)}.")
    return frozenset(names)


def _conditions(policy: JsonBody) -> list[JsonBody]:
    return [one for one in policy.get("bindings", []) if "condition" in one]


def _checked_bindings(policy: JsonBody) -> list[JsonBody]:
    """The bindings as IAM keeps them: one for each role and condition, without repeated members."""
    merged: dict[str, JsonBody] = {}
    for binding in policy.get("bindings", []):
        role, members = binding.get("role", ""), binding.get("members", [])
        if not _ROLE.fullmatch(role):
            raise invalid_argument(f"Role {role} is not supported for this resource.")
        for one in members:
            if not _MEMBER.fullmatch(one):
                raise invalid_argument(
                    f"The member {one} is of an unknown type. Set a valid type prefix for the member."
                )
        if "condition" in binding:
            _check_condition(binding["condition"], role, members)
        members = [_LOWER_CASE.sub(lambda found: _lowered(found[0]), one, count=1) for one in members]
        known = merged.setdefault(digest(role, binding.get("condition")), {**binding, "members": []})
        known["members"] = list(dict.fromkeys((*known["members"], *members)))
    return [one for one in merged.values() if one["members"]]


def _check_condition(condition: JsonBody, role: str, members: list[str]) -> None:
    if not condition.get("expression"):
        raise invalid_argument("A condition must have an expression.")
    if not condition.get("title"):
        raise invalid_argument("A condition must have a title.")
    if role in _BASIC_ROLES:
        raise invalid_argument(f"Conditions are not supported for the basic role {role}.")
    if any(one in _ANYONE for one in members):
        raise invalid_argument("Conditions are not supported for allUsers and allAuthenticatedUsers.")


def _lowered(member: str) -> str:
    """The member with its type as it is, and the rest in lower case."""
    start = member.index(":", len("deleted:") if member.startswith("deleted:") else 0)
    return member[:start] + member[start:].lower()


def _concurrent_change() -> CloudApiError:
    message = "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff."
    return CloudApiError(409, "aborted", message, "ABORTED")
