"""The options of a command, checked; KIND/NAME targets; and running a command to its exit code."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from setpoint.app import DEFAULT_STORE, AppSettings
from setpoint.cli.views.outcome import ExitCode
from setpoint.core.values.durations import parse_duration
from setpoint.engine.context import CookieLocation, EngineContext
from setpoint.engine.owners.children import unreconciled_kinds
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid, SetpointError

_PIPE_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command's options. `console` is standard output."""

    settings: AppSettings
    console: Console
    files: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    namespace: str | None = "default"
    output: str = "table"
    wait: bool = True
    watch: bool = False
    seconds: float = 300.0

    @staticmethod
    def of(options: dict[str, Any]) -> "CommandRequest":
        """The request that the options of a command line make."""
        settings = AppSettings(
            options["store"] or DEFAULT_STORE, CookieLocation(options["cookies"]), environment=dict(os.environ)
        )
        return CommandRequest(
            settings,
            console_for(sys.stdout.isatty()),
            tuple(options.get("files", ())),
            tuple(options.get("targets", ())),
            None if options.get("all_namespaces") else options.get("namespace", "default"),
            options.get("output", "table"),
            options.get("wait", True),
            options.get("watch", False),
            parse_duration(options.get("timeout", "5m")),
        )


def console_for(is_terminal: bool) -> Console:  # noqa: FBT001  # there is only this to know
    """Standard output: a terminal as wide as it is, a pipe as wide as lines get."""
    return Console(highlight=False) if is_terminal else Console(highlight=False, width=_PIPE_COLUMNS)


Command = Callable[[CommandRequest], Awaitable[ExitCode]]


def run_command(command: Callable[[CommandRequest], Awaitable[int]], options: dict[str, Any]) -> int:
    """The exit code of `command`; an error of ours is one line on standard error, never a traceback."""
    try:
        return asyncio.run(_run_async(command, CommandRequest.of(options)))
    except SetpointError as error:
        Console(stderr=True, highlight=False).print(Text(f"error: {error}", style="red"), soft_wrap=True)
        return ExitCode.FAILED
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: what was begun is on record, and the next run goes on\n")
        return 130


async def _run_async(command: Callable[[CommandRequest], Awaitable[int]], request: CommandRequest) -> int:
    return await command(request)


def ref_of_target(target: str, namespace: str | None, engine: EngineContext) -> ResourceRef:
    """The resource that KIND/NAME names; the kind in any case, singular or plural."""
    kind, slash, name = target.partition("/")
    if not slash or not name:
        raise ManifestInvalid(f"{target!r} names no resource: write KIND/NAME, such as StorageBucket/logs")
    group, exact = kind_of_word(kind, engine)
    return ResourceRef(group, exact, namespace or "default", name)


def kind_of_word(word: str, engine: EngineContext) -> tuple[str, str]:
    """The group and name of the kind that `word` means."""
    return find_kind(word, [*engine.resource_types, *unreconciled_kinds(engine)])


def find_kind(word: str, kinds: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The one of these kinds that `word` means, in any case, singular or plural."""
    known = {name.lower(): (group, name) for group, name in kinds}
    found = known.get(word.lower()) or known.get(word.lower().removesuffix("s"))
    if found is None:
        names = ", ".join(sorted(name for _, name in known.values()))
        raise ManifestInvalid(f"no kind {word!r} is known here; there is {names}")
    return found


def parse_target(target: str, engine: EngineContext) -> tuple[tuple[str, str], str]:
    """The kind and the name that KIND or KIND/NAME means; no name for all of them."""
    kind, _, name = target.partition("/")
    return kind_of_word(kind, engine), name


def matches_targets(resource: Resource, wanted: Sequence[tuple[tuple[str, str], str]]) -> bool:
    """Whether it is one of these; nothing wanted means everything."""
    kind = (resource.ref.group, resource.ref.kind)
    return not wanted or any(kind == one and name in ("", resource.ref.name) for one, name in wanted)


def require_targets_found(wanted: Sequence[tuple[tuple[str, str], str]], found: Sequence[Resource]) -> None:
    """ManifestInvalid for the first that is named and not there."""
    there = {((one.ref.group, one.ref.kind), one.ref.name) for one in found}
    for kind, name in wanted:
        if name and (kind, name) not in there:
            raise ManifestInvalid(f"{kind[1]} {name} is not declared here: `setpoint get -A` lists what is")
