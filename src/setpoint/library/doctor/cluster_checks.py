"""Checks of a store in a cluster: who we are there, what we may do, and whether the definitions are current."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from setpoint.app import AppSettings, all_plugins, all_types, definitions_of, described_types
from setpoint.app.cluster import cluster_namespaces, open_cluster_client
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.unstructured import GroupKind, text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.deployment.rbac import (
    KindAccess,
    access_of,
    cluster_scoped_rules,
    lease_rules,
    namespace_rule,
    resource_rules,
    tenant_rules,
    watch_rules,
)
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import is_handled_by_default
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.errors import RemoteError, RemoteRefused
from setpoint.library.doctor.findings import Finding, failure, failure_of, ok, warning
from setpoint.library.doctor.probe import ProbeResult

_DEFINITIONS: Final = Endpoint("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_ACCESS_REVIEWS: Final = Endpoint("authorization.k8s.io", "v1", "selfsubjectaccessreviews")
_SELF_REVIEWS: Final = Endpoint("authentication.k8s.io", "v1", "selfsubjectreviews")
_AT_ONCE: Final = 16
# So many missing fields are named.
_FIELDS_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Right:
    """One thing that the controller does in a cluster; without a namespace it does so in all of them."""

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str | None = None

    def review(self) -> JsonObject:
        """The review that asks whether we may."""
        plural, _, subresource = self.resource.partition("/")
        asked = {"group": self.group, "resource": plural, "subresource": subresource, "verb": self.verb}
        attributes = {**asked, "name": self.name, "namespace": self.namespace or ""}
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
        }


@asynccontextmanager
async def cluster_client(settings: AppSettings, acting_as: str = "") -> AsyncIterator[KubernetesClient]:
    """A client of the cluster of the store, on behalf of another user if one is named."""
    client = open_cluster_client(settings)
    try:
        yield client.acting_as(acting_as) if acting_as else client
    finally:
        await client.close()


async def check_identity(settings: AppSettings, acting_as: str) -> Sequence[Finding]:
    """Who the API server takes us for."""
    body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with cluster_client(settings, acting_as) as client:
        where = client.connection.name
        try:
            found = msgspec.json.decode(await client.create(_SELF_REVIEWS, body))
        except RemoteRefused as error:
            return [failure(str(error), where, "renew the credentials of this context, or use another one")]
        except RemoteError as error:
            return [failure_of(error, where)]
    user = found.get("status", {}).get("userInfo", {}).get("username", "unknown")
    return [ok(f"the API server takes us for {user}", where)]


async def check_api_server(settings: AppSettings) -> Sequence[Finding]:
    """The version of the API server."""
    async with cluster_client(settings) as client:
        try:
            found = msgspec.json.decode((await client.read("/version", {})).body)
        except RemoteError as error:
            return [failure_of(error, client.connection.server)]
        return [ok(f"API server {found.get('gitVersion', 'of an unknown version')}", client.connection.server)]


# --- Rights -----------------------------------------------------------------------------------------------------------


async def check_rights(settings: AppSettings, acting_as: str) -> Sequence[Finding]:
    """Whether each right that `setpoint install` gives the controller is there, for the kinds that are served."""
    namespace, leases = cluster_namespaces(settings)
    async with cluster_client(settings, acting_as) as client:
        try:
            served = await _served_definitions(client)
            wanted = list(_wanted_rights(_access(served), namespace, leases))
            allowed = await _reviewed(client, wanted)
        except RemoteError as error:
            return [failure_of(error, client.connection.name)]
    missing = defaultdict[str, list[str]](list)
    for right, is_allowed in zip(wanted, allowed, strict=True):
        if not is_allowed:
            where = "in all namespaces" if right.namespace is None else f"in {right.namespace}"
            named = f"{right.resource}.{right.group}".rstrip(".") + (f" {right.name}" if right.name else "")
            missing[f"{named} {where}"].append(right.verb)
    advice = "apply what `setpoint install --dry-run` prints, or ask an administrator for it"
    found = [failure(f"may not {', '.join(verbs)} {what}", "", advice) for what, verbs in missing.items()]
    return found or [ok(f"all {len(wanted)} rights that the controller needs are there")]


def _access(served: Mapping[GroupKind, JsonObject]) -> KindAccess:
    types, names = described_types(all_plugins()), set(served)
    handled = [name for name, one in types.items() if name in names and is_handled_by_default(one)]
    return access_of([types[name] for name in handled], definitions_of(handled, all_plugins()).values())


def _wanted_rights(access: KindAccess, namespace: str | None, leases: str) -> Iterator[Right]:
    rules = [
        *resource_rules(access.kinds),
        *tenant_rules(),
        *watch_rules(access.watched),
        *(cluster_scoped_rules(access.cluster_scoped) if namespace is None else ()),
    ]
    for one in rules:
        yield from _rights_of(one, namespace)
    # A Namespace is in no namespace, and a Role covers `get` of its own.
    for right in _rights_of(namespace_rule(everywhere=namespace is None), namespace):
        yield Right(right.group, right.resource, right.verb, namespace or "", namespace)
    for one in lease_rules():
        yield from _rights_of(one, leases)


def _rights_of(rule: JsonObject, namespace: str | None) -> Iterator[Right]:
    def texts(member: str) -> list[str]:
        found = rule.get(member, [])
        return [str(one) for one in found] if isinstance(found, list) else []

    for group in texts("apiGroups"):
        for resource in texts("resources"):
            for verb in texts("verbs"):
                for name in texts("resourceNames") or [""]:
                    yield Right(group, resource, verb, name, namespace)


async def _reviewed(client: KubernetesClient, rights: Iterable[Right]) -> Sequence[bool]:
    """Whether we have each of them. Reviews are answered, and not stored."""
    turns, urgent = asyncio.Semaphore(_AT_ONCE), client.unthrottled()

    async def review(right: Right) -> bool:
        async with turns:
            answer = msgspec.json.decode(await urgent.create(_ACCESS_REVIEWS, right.review()))
        return bool(answer.get("status", {}).get("allowed", False))

    return await asyncio.gather(*map(review, rights))


# --- Definitions ------------------------------------------------------------------------------------------------------


async def check_definitions(settings: AppSettings, probe: ProbeResult) -> Sequence[Finding]:
    """Whether the CustomResourceDefinitions are those of this version: what they lack is dropped without a word."""
    async with cluster_client(settings) as client:
        where = client.connection.name
        try:
            served = await _served_definitions(client)
        except RemoteRefused:
            advice = "run the doctor as a user that may list customresourcedefinitions"
            return [warning("the definitions were not compared: we may not read them", where, advice)]
        except RemoteError as error:
            return [failure_of(error, where)]
    types: Mapping[GroupKind, ResourceType] = all_types(all_plugins())
    ours = definitions_of([name for name in served if name in types or name == REFERENCE_GRANT], all_plugins())
    found = [finding for name in sorted(ours) for finding in _compared(ours[name], served[name])]
    declared = {one.ref.group_kind for one in probe.resources}
    found += [
        failure(f"{kind} is declared, and not served", where, _advice(kind)) for _, kind in sorted(declared - {*served})
    ]
    if not served:
        return [warning("no kind of setpoint is served", where, "run `setpoint install`")]
    return found or [ok(f"all {len(ours)} definitions are those of this version", where)]


async def _served_definitions(client: KubernetesClient) -> Mapping[GroupKind, JsonObject]:
    """The definitions of kinds that this version knows."""
    known = {*all_types(all_plugins()), REFERENCE_GRANT}
    found: dict[GroupKind, JsonObject] = {}
    async for page in client.pages(_DEFINITIONS):
        for one in page.items:
            definition: JsonObject = msgspec.json.decode(one)
            name = (text_at(definition, "spec", "group"), text_at(definition, "spec", "names", "kind"))
            if name in known:
                found[name] = definition
    return found


def _compared(ours: JsonObject, served: JsonObject) -> Iterator[Finding]:
    kind, versions = text_at(ours, "spec", "names", "kind"), _versions(served)
    where = text_at(served, "metadata", "name")
    for name, schema in _versions(ours).items():
        missing = list(_missing(schema, versions[name])) if name in versions else []
        if name not in versions:
            yield failure(f"{kind}: version {name} is not served", where, _advice(kind))
        elif missing:
            more = f" and {len(missing) - _FIELDS_NAMED} more" if len(missing) > _FIELDS_NAMED else ""
            text = f"{kind}: the definition lacks {', '.join(missing[:_FIELDS_NAMED])}{more}: what is there is dropped"
            yield failure(text, where, _advice(kind))
    status: Any = served.get("status")
    stored = status.get("storedVersions", []) if isinstance(status, dict) else []
    for old in [one for one in stored if one not in _versions(ours)]:
        text = f"{kind}: objects may still be stored as {old}, which this version does not know"
        yield warning(text, where, f"write each of them once, then take {old} out of status.storedVersions")


def _advice(kind: str) -> str:
    return f"run `setpoint crds {kind} | kubectl apply --server-side -f -`"


def _versions(definition: JsonObject) -> Mapping[str, Json]:
    spec: Any = definition["spec"]
    return {one["name"]: one.get("schema", {}).get("openAPIV3Schema", {}) for one in spec["versions"] if one["served"]}


def _missing(ours: Any, served: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - two trees of JSON
    """The fields of a schema that another one would drop."""
    if not isinstance(ours, dict) or not isinstance(served, dict) or served.get("x-kubernetes-preserve-unknown-fields"):
        return
    there = served.get("properties", {})
    for name, schema in ours.get("properties", {}).items():
        below = f"{path}.{name}".lstrip(".")
        if name in there:
            yield from _missing(schema, there[name], below)
        else:
            yield below
    for member, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if member in ours:
            yield from _missing(ours[member], served.get(member), f"{path}{mark}")
