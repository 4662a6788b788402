"""`setpoint install` and `setpoint tenant`: what setpoint itself needs in a cluster, and what a namespace gives it.

Both print manifests for kubectl, or apply them.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from rich.text import Text

from setpoint.app import (
    all_plugins,
    all_types,
    annotation_policies,
    definitions_of,
    described_types,
    select_kinds,
)
from setpoint.cli.request import CommandRequest, print_json, run_command
from setpoint.cli.views.terminal import error_console
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_environment
from setpoint.clients.kubernetes.discovery import Discovery
from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint, Representation
from setpoint.core.conditions import find_condition
from setpoint.core.unstructured import GroupKind, conditions_of, display_name, text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.yaml_documents import write_document
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import controller_manifests, type_manifests
from setpoint.deployment.rbac import KUBERNETES_OBJECTS, POLICY_GROUP, KindAccess, access_of
from setpoint.deployment.tenants import (
    TENANT_ANNOTATIONS,
    TenantOptions,
    namespace_annotations,
    objects_binding,
    tenant_manifests,
)
from setpoint.engine.kind import ResourceType
from setpoint.engine.management import CookieLocation
from setpoint.engine.owner import Owner, is_handled_by_default
from setpoint.engine.ports import Clock
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.engine.tenancy.tenants import TenancyMode
from setpoint.errors import KindNotServed, UserError, WaitTimedOut
from setpoint.library.outcome import ExitCode

# Not the field manager of the controllers: an installation is applied by an operator.
FIELD_MANAGER: Final = "setpoint-install"
TENANT_FIELD_MANAGER: Final = "setpoint-tenant"
_OBJECT_KIND: Final = "KubernetesObject"
_DEFINITION: Final = "CustomResourceDefinition"
# An API server takes moments to serve a new CRD.
_ESTABLISH_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1


# --- setpoint install -------------------------------------------------------------------------------------------------


def install(options: dict[str, Any]) -> int:
    """The exit code of the command."""
    return run_command(lambda request: _install(request, options), options)


async def _install(request: CommandRequest, options: dict[str, Any]) -> ExitCode:
    kinds = _installed(_words(options))
    installation = _installation(kinds, options)
    objects = _objects(installation, kinds, options)
    for image in installation.mutable_images():
        _warn(f"{image} is named by a tag, which may be moved to other bytes: name it by its digest, as NAME@sha256:…")
    if options["dry_run"]:
        _print(objects, request)
    else:
        async with _applier(request, FIELD_MANAGER, force=options["force"]) as applier:
            await applier.apply_all(objects)
    return ExitCode.DONE


def _warn(text: str) -> None:
    """Prints on standard error: the manifests may be on standard output."""
    error_console().print(Text(text, style="yellow"), soft_wrap=True)


def _installation(kinds: Sequence[GroupKind], options: dict[str, Any]) -> Installation:
    return Installation(
        options["namespace"],
        options["image"],
        options["replicas"],
        options["shards"],
        options["watch_namespace"],
        tuple(_variable(one) for one in options["env"]),
        tuple(name for _, name in kinds),
        TenancyMode(options["tenancy"] or TenancyMode.STRICT),
        CookieLocation(options["cookie_location"]),
        options["dashboard"],
        options["notify_secret"] or "",
    )


def _objects(installation: Installation, kinds: Sequence[GroupKind], options: dict[str, Any]) -> list[JsonObject]:
    process = controller_manifests(installation, _access(kinds))
    if not options["crds"]:
        return process
    # Grants are declared by administrators of namespaces, and go with every kind.
    types = list(definitions_of({*kinds, REFERENCE_GRANT}, all_plugins()).values())
    objects_too = options["aggregate_kubernetes_objects"]
    return [*type_manifests(types, annotation_policies(all_plugins(), kinds), objects_too=objects_too), *process]


def _installed(words: Sequence[str]) -> Sequence[GroupKind]:
    """The kinds of an installation. Those of the catalogue are handled when they are named."""
    return installed_kinds(words, all_types(all_plugins()) if words else described_types(all_plugins()))


def _words(options: Mapping[str, Any]) -> list[str]:
    return [word.strip() for word in options["kinds"].split(",") if word.strip()]


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    # Without "=" the name is invalid, and is refused with the other names.
    return (name, value) if equals else (f"{text}=", "")


def installed_kinds(words: Sequence[str], types: Mapping[GroupKind, ResourceType]) -> Sequence[GroupKind]:
    """The kinds that `words` name, and no others; without words all but those that need more rights.

    UserError for an owner without a kind that it makes: no controller would reconcile its children.
    """
    if not words:
        return [name for name, one in types.items() if is_handled_by_default(one)]
    chosen = list(dict.fromkeys(select_kinds(words, types)))
    for owner in (types[name] for name in chosen):
        for made in owner.makes if isinstance(owner, Owner) else ():
            if (made.group, made.kind) in types and (made.group, made.kind) not in chosen:
                raise UserError(
                    f"--kinds: a {owner.name} makes a {made.kind}, which has to be handled as well: add {made.kind}"
                )
    return chosen


def _access(kinds: Collection[GroupKind]) -> KindAccess:
    types = all_types(all_plugins())
    return access_of([types[name] for name in kinds], definitions_of(kinds, all_plugins()).values())


def _print(objects: Sequence[JsonObject], request: CommandRequest) -> None:
    if request.output == "json":
        print_json({"apiVersion": "v1", "kind": "List", "items": list(objects)}, request)
    else:
        request.console.out("---\n".join(map(write_document, objects)), end="")


# --- setpoint tenant --------------------------------------------------------------------------------------------------


def set_up_tenant(options: dict[str, Any]) -> int:
    """The exit code of the command."""
    return run_command(lambda request: _set_up_tenant(request, options), options)


async def _set_up_tenant(request: CommandRequest, options: dict[str, Any]) -> ExitCode:
    tenant = TenantOptions(
        options["tenant"],
        options["service_account"],
        "edit" if options["role"] is None else options["role"],
        options["project"],
        options["google_service_account"],
        options["operator_namespace"],
        options["operator_service_account"],
    )
    objects = tenant_manifests(tenant, _tenant_access(tenant, options))
    if options["dry_run"]:
        _print(objects, request)
        return ExitCode.DONE
    async with _applier(request, TENANT_FIELD_MANAGER, force=options["force"]) as applier:
        objects = await _with_earlier_annotations(tenant, objects, applier)
        await _withdraw_role(tenant, objects, applier)
        await applier.apply_all(objects)
    return ExitCode.DONE


def _tenant_access(tenant: TenantOptions, options: Mapping[str, Any]) -> KindAccess:
    """What the account needs access to; only KubernetesObjects name another account than the default one."""
    words = _words(options)
    kinds = _installed(words if words or tenant.is_default_account else [_OBJECT_KIND])
    others = [name for _, name in kinds if name != _OBJECT_KIND]
    if others and not tenant.is_default_account:
        raise UserError(
            f"--kinds: a {others[0]} names no account: leave out --service-account, or all kinds but {_OBJECT_KIND}"
        )
    access = _access(kinds)
    if options["role"] and KUBERNETES_OBJECTS not in access.kinds:
        raise UserError(f"--role says what a {_OBJECT_KIND} may do: add {_OBJECT_KIND} to --kinds, or leave it out")
    return access


async def _with_earlier_annotations(
    tenant: TenantOptions, objects: list[JsonObject], applier: "_Applier"
) -> list[JsonObject]:
    """The same, with the annotations of an earlier run that this one does not name; UserError without the Namespace.

    What an apply leaves out is removed: a tenant would lose its project with a change of its Google account.
    """
    live = await applier.read(namespace_annotations(tenant.namespace, {}))
    if live is None:
        raise UserError(
            f"there is no namespace {tenant.namespace}: make it first with `kubectl create namespace "
            f"{tenant.namespace}`, or check the name"
        )
    if not tenant.annotations:
        return objects
    earlier = {name: text_at(live, "metadata", "annotations", name) for name in TENANT_ANNOTATIONS}
    kept = {name: text for name, text in earlier.items() if text}
    return [namespace_annotations(tenant.namespace, {**kept, **tenant.annotations}), *objects[1:]]


async def _withdraw_role(tenant: TenantOptions, objects: Sequence[JsonObject], applier: "_Applier") -> None:
    """Deletes the binding of an earlier run, if it is to another role: a cluster does not change the role of one."""
    binding = objects_binding(tenant)
    live = await applier.read(binding)
    given = text_at(binding, "roleRef", "name") if binding in objects else ""
    if live is not None and (text_at(live, "roleRef", "kind"), text_at(live, "roleRef", "name")) != (
        "ClusterRole",
        given,
    ):
        await applier.delete(binding)


# --- Applying ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _applier(request: CommandRequest, manager: str, *, force: bool) -> AsyncIterator["_Applier"]:
    client = KubernetesClient(connection_from_environment(request.settings.environment))
    try:
        yield _Applier(client, Discovery(client), request, manager, force)
    finally:
        await client.close()


@dataclass(frozen=True, slots=True)
class _Applier:
    """Applies manifests to a cluster as one field manager, with a line for each."""

    client: KubernetesClient
    discovery: Discovery
    request: CommandRequest
    manager: str
    force: bool

    async def apply_all(self, objects: Sequence[JsonObject]) -> None:
        """Applies one after the other; the first error ends it. Idempotent: it can be run again."""
        for tree in objects:
            try:
                endpoint = await self._endpoint(tree)
            except KindNotServed:
                if not text_at(tree, "apiVersion").startswith(f"{POLICY_GROUP}/"):
                    raise
                self._say(tree, "left out: the cluster does not serve this kind; Kubernetes 1.30 and newer do")
                continue
            word = await self._apply(tree, endpoint)
            if text_at(tree, "kind") == _DEFINITION:
                await _wait_established(endpoint, self.client, self.request.settings.clock)
            self._say(tree, word)

    async def read(self, tree: JsonObject) -> Json:
        """The object as it is in the cluster, or None."""
        found = await self.client.get(await self._endpoint(tree))
        return None if found is None else _decoded(found)

    async def delete(self, tree: JsonObject) -> None:
        """Deletes an object."""
        await self.client.delete(await self._endpoint(tree))
        self._say(tree, "deleted")

    async def _apply(self, tree: JsonObject, endpoint: Endpoint) -> str:
        """Created, updated or unchanged. HeldByOthers for a field of another manager, unless `force`."""
        before = await self.client.get(endpoint, Representation.METADATA)
        after = await self.client.apply(endpoint, tree, ApiWriteOptions(self.manager), force=self.force)
        if before is None:
            return "created"
        return "unchanged" if _resource_version(before) == _resource_version(after) else "updated"

    async def _endpoint(self, tree: JsonObject) -> Endpoint:
        kind = await self.discovery.find(text_at(tree, "apiVersion"), text_at(tree, "kind"))
        return kind.endpoint(text_at(tree, "metadata", "namespace") or None, text_at(tree, "metadata", "name"))

    def _say(self, tree: JsonObject, word: str) -> None:
        self.request.console.print(Text(f"{display_name(tree)} {word}"), soft_wrap=True)


async def _wait_established(endpoint: Endpoint, client: KubernetesClient, clock: Clock) -> None:
    """Waits until the API server serves the CRD; WaitTimedOut when that takes too long."""
    end = clock.monotonic() + _ESTABLISH_SECONDS
    while True:
        conditions = conditions_of(_decoded(await client.get(endpoint) or b"{}"))
        established = find_condition(conditions, "Established")
        if established is not None and established.status == "True":
            return
        if clock.monotonic() >= end:
            why = "; ".join(one.message for one in conditions if one.status == "False") or "it does not say why"
            raise WaitTimedOut(f"the cluster does not serve {endpoint.name} yet: {why}: mend that, and run again")
        await clock.sleep(_POLL_SECONDS)


def _resource_version(raw: bytes) -> str:
    return text_at(_decoded(raw), "metadata", "resourceVersion")


def _decoded(raw: bytes) -> Json:
    live: Json = orjson.loads(raw)
    return live
