"""`setpoint install`: the manifests of setpoint itself, printed for kubectl or applied to a cluster."""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from rich.text import Text

from setpoint.app import definitions, owners, select_kinds
from setpoint.cli.request import CommandRequest, print_json, run_command
from setpoint.cli.views.outcome import ExitCode
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_environment
from setpoint.clients.kubernetes.discovery import Discovery
from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint, Representation
from setpoint.core.conditions import find_condition
from setpoint.core.unstructured import conditions_of, display_name, text_at
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.yaml_documents import write_document
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import controller_manifests, type_manifests
from setpoint.deployment.rbac import access_of_owners, resources_of
from setpoint.engine.ports import Clock
from setpoint.engine.tenancy import TenancyMode
from setpoint.errors import WaitTimedOut

# Not the field manager of the controllers: an installation is applied by an operator.
FIELD_MANAGER: Final = "setpoint-install"
_DEFINITION: Final = "CustomResourceDefinition"
# An API server takes moments to serve a new CRD.
_ESTABLISH_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1


def install(options: dict[str, Any]) -> int:
    """The exit code of the command."""
    return run_command(lambda request: _install(request, options), options)


async def _install(request: CommandRequest, options: dict[str, Any]) -> ExitCode:
    objects = _objects(options)
    if options["dry_run"]:
        _print(objects, request)
    else:
        client = KubernetesClient(connection_from_environment(request.settings.environment))
        try:
            await _apply_all(objects, client, request, force=options["force"])
        finally:
            await client.close()
    return ExitCode.DONE


def _objects(options: dict[str, Any]) -> list[JsonObject]:
    known = definitions()
    words = [word for word in options["kinds"].split(",") if word]
    kinds = tuple(name for _, name in select_kinds(words, known)) if words else ()
    types = list(known.values())
    installation = Installation(
        options["namespace"],
        options["image"],
        options["replicas"],
        options["shards"],
        options["watch_namespace"],
        tuple(_variable(one) for one in options["env"]),
        kinds,
        TenancyMode(options["tenancy"] or TenancyMode.STRICT),
    )
    # An owner may own another owner's resources: there are rights for all owners, or for none.
    handled = owners() if not kinds or any(owner.name in kinds for owner in owners()) else ()
    process = controller_manifests(installation, resources_of(types), access_of_owners(handled, types))
    return [*(type_manifests(types) if options["crds"] else ()), *process]


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    # Without "=" the name is invalid, and is refused with the other names.
    return (name, value) if equals else (f"{text}=", "")


def _print(objects: Sequence[JsonObject], request: CommandRequest) -> None:
    if request.output == "json":
        print_json({"apiVersion": "v1", "kind": "List", "items": list(objects)}, request)
    else:
        request.console.out("---\n".join(map(write_document, objects)), end="")


# --- Applying ---------------------------------------------------------------------------------------------------------


async def _apply_all(
    objects: Sequence[JsonObject], client: KubernetesClient, request: CommandRequest, *, force: bool
) -> None:
    """Applies one after the other, with a line for each; the first error ends it. Idempotent: it can be run again."""
    discovery = Discovery(client)
    for tree in objects:
        kind = await discovery.find(text_at(tree, "apiVersion"), text_at(tree, "kind"))
        endpoint = kind.endpoint(text_at(tree, "metadata", "namespace") or None, text_at(tree, "metadata", "name"))
        word = await _apply(tree, endpoint, client, force=force)
        if text_at(tree, "kind") == _DEFINITION:
            await _wait_established(endpoint, client, request.settings.clock)
        request.console.print(Text(f"{display_name(tree)} {word}"), soft_wrap=True)


async def _apply(tree: JsonObject, endpoint: Endpoint, client: KubernetesClient, *, force: bool) -> str:
    """Applies an object: created, updated or unchanged. HeldByOthers for a field of another manager, unless `force`."""
    before = await client.get(endpoint, Representation.METADATA)
    after = await client.apply(endpoint, tree, ApiWriteOptions(FIELD_MANAGER), force=force)
    if before is None:
        return "created"
    return "unchanged" if _resource_version(before) == _resource_version(after) else "updated"


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
