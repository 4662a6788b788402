"""`setpoint install`: setpoint in a cluster, as a stream for kubectl or applied here and now."""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from rich.text import Text

from setpoint.app import chosen, definitions, owners
from setpoint.cli import resources_view as view
from setpoint.cli.requests import Request, carry_out
from setpoint.cli.states import Exit
from setpoint.clients.kube_config import connection_from
from setpoint.clients.kube_discovery import Discovery
from setpoint.clients.kube_endpoints import Endpoint, Form, Write
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.core.conditions import find_condition
from setpoint.core.kubernetes import conditions_of, text_at, title
from setpoint.core.values import Json
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import of_process, of_types
from setpoint.deployment.rights import objects_of, served_by
from setpoint.engine.ports import Clock
from setpoint.engine.resource import Tree
from setpoint.errors import WaitTimedOut

# Not the name under which `setpoint` sets fields elsewhere: an installation is somebody's own decision.
FIELD_MANAGER: Final = "setpoint-install"
_DEFINITION: Final = "CustomResourceDefinition"
# A cluster takes moments to serve a new kind.
_PATIENCE: Final = 60.0
_GLANCE: Final = 0.1


def install(options: dict[str, Any]) -> int:
    """The exit code of the command."""
    return carry_out(lambda request: _install(request, options), options)


async def _install(request: Request, options: dict[str, Any]) -> Exit:
    objects = _objects(options)
    if options["dry_run"]:
        _print(objects, request)
    else:
        client = KubernetesClient(connection_from(request.settings.environment))
        try:
            await _apply_all(objects, client, request, force=options["force"])
        finally:
            await client.close()
    return Exit.DONE


def _objects(options: dict[str, Any]) -> list[Tree]:
    known = definitions()
    words = [word for word in options["kinds"].split(",") if word]
    kinds = tuple(name for _, name in chosen(words, known)) if words else ()
    types = list(known.values())
    installation = Installation(
        options["namespace"],
        options["image"],
        options["replicas"],
        options["shards"],
        options["watch_namespace"],
        tuple(_variable(one) for one in options["env"]),
        kinds,
    )
    # One makes what another looks after: there are rights for all of them, or for none.
    handled = owners() if not kinds or any(owner.name in kinds for owner in owners()) else ()
    process = of_process(installation, served_by(types), objects_of(handled, types))
    return [*(of_types(types) if options["crds"] else ()), *process]


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    # As a whole it names no variable, and is refused.
    return (name, value) if equals else (f"{text}=", "")


def _print(objects: Sequence[Tree], request: Request) -> None:
    if request.output == "json":
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        request.console.out(orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode())
    else:
        request.console.out("---\n".join(map(view.as_yaml, objects)), end="")


# --- Applying ---------------------------------------------------------------------------------------------------------


async def _apply_all(objects: Sequence[Tree], client: KubernetesClient, request: Request, *, force: bool) -> None:
    """Each in its turn, with a line for each; one that is refused ends it. To run it again goes on from there."""
    discovery = Discovery(client)
    for tree in objects:
        kind = await discovery.find(text_at(tree, "apiVersion"), text_at(tree, "kind"))
        endpoint = kind.endpoint(text_at(tree, "metadata", "namespace") or None, text_at(tree, "metadata", "name"))
        word = await _apply(tree, endpoint, client, force=force)
        if text_at(tree, "kind") == _DEFINITION:
            await _established(endpoint, client, request.settings.clock)
        request.console.print(Text(f"{title(tree)} {word}"), soft_wrap=True)


async def _apply(tree: Tree, endpoint: Endpoint, client: KubernetesClient, *, force: bool) -> str:
    """What became of it, in one word. HeldByOthers for a field that somebody else has set, unless there is `force`."""
    before = await client.get(endpoint, Form.METADATA)
    after = await client.apply(endpoint, tree, Write(FIELD_MANAGER), force=force)
    if before is None:
        return "created"
    return "unchanged" if _version(before) == _version(after) else "updated"


async def _established(endpoint: Endpoint, client: KubernetesClient, clock: Clock) -> None:
    """Returns when the cluster serves the kind; WaitTimedOut when it does not in good time."""
    end = clock.monotonic() + _PATIENCE
    while True:
        conditions = conditions_of(_decoded(await client.get(endpoint) or b"{}"))
        established = find_condition(conditions, "Established")
        if established is not None and established.status == "True":
            return
        if clock.monotonic() >= end:
            why = "; ".join(one.message for one in conditions if one.status == "False") or "it does not say why"
            raise WaitTimedOut(f"the cluster does not serve {endpoint.name} yet: {why}: mend that, and run again")
        await clock.sleep(_GLANCE)


def _version(raw: bytes) -> str:
    return text_at(_decoded(raw), "metadata", "resourceVersion")


def _decoded(raw: bytes) -> Json:
    live: Json = orjson.loads(raw)
    return live
