"""`setpoint crds`: the CustomResourceDefinitions of kinds, for kubectl or a repository."""

from collections.abc import Sequence
from typing import Any

from setpoint.app import all_plugins, all_types, annotation_policies, definitions, definitions_of
from setpoint.app.kinds import find_kind, kinds_of_service
from setpoint.app.plugins import Plugins
from setpoint.cli.commands.authoring.manifest_kinds import kinds_in
from setpoint.cli.request import CommandRequest, print_document, run_command
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.yaml_documents import write_document
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.library.outcome import ExitCode


def crds(options: dict[str, Any]) -> int:
    """The exit code of the command."""
    selection = {name: options[name] for name in ("manifests", "services", "is_all")}
    return run_command(lambda request: print_definitions(request, **selection), options)


async def print_definitions(
    request: CommandRequest, *, manifests: Sequence[str] = (), services: Sequence[str] = (), is_all: bool = False
) -> ExitCode:
    """Prints the definitions that are asked for; without a word, those of our own kinds, with their policies.

    `is_all` has those of the catalogue as well: they are many, and a cluster needs the ones that it uses.
    """
    plugins = all_plugins()
    known = {*all_types(plugins), REFERENCE_GRANT}
    if is_all:
        policies = annotation_policies(plugins, known - {REFERENCE_GRANT})
        _print([*definitions_of(known, plugins).values(), *policies], request)
        return ExitCode.DONE
    named = dict.fromkeys(find_kind(word, known) for word in request.targets)
    others = {*(name for one in services for name in kinds_of_service(one)), *kinds_in(manifests, known)}
    _print(_selected([*named, *sorted(others - named.keys())], plugins), request)
    return ExitCode.DONE


def _selected(names: Sequence[GroupKind], plugins: Plugins) -> list[JsonObject]:
    if not names:
        return [*definitions(plugins).values(), *annotation_policies(plugins)]
    found = definitions_of(names, plugins)
    return [found[name] for name in names]


def _print(documents: list[JsonObject], request: CommandRequest) -> None:
    if request.output == "yaml":
        request.console.out("---\n".join(write_document(document) for document in documents), end="")
    elif len(request.targets) == len(documents) == 1:
        print_document(documents[0], request)
    else:
        print_document({"apiVersion": "v1", "kind": "List", "items": list(documents)}, request)
