"""`setpoint schema`: JSON Schema of manifests, for editors and other tools."""

from collections.abc import Sequence
from typing import Any

import orjson

from setpoint.app import all_plugins, all_types
from setpoint.app.kinds import find_kind
from setpoint.app.manifest_schema import manifest_schema
from setpoint.cli.commands.authoring.manifest_kinds import kinds_in
from setpoint.cli.request import CommandRequest, run_command
from setpoint.library.outcome import ExitCode


def schema(options: dict[str, Any]) -> int:
    """The exit code of the command."""
    return run_command(lambda request: print_schema(request, options["manifests"]), options)


async def print_schema(request: CommandRequest, manifests: Sequence[str] = ()) -> ExitCode:
    """Prints one schema: of the kinds that are named, of those in manifests, or of all."""
    plugins = all_plugins()
    known = set(all_types(plugins))
    chosen = {*(find_kind(word, known) for word in request.targets), *kinds_in(manifests, known)}
    found = manifest_schema(chosen or known, plugins)
    # That of all kinds is for an editor, and takes twice the space with indentation.
    option = orjson.OPT_INDENT_2 if chosen else 0
    request.console.out(orjson.dumps(found, option=option).decode())
    return ExitCode.DONE
