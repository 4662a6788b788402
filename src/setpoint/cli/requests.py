"""What somebody asked a command to do, checked; and the end of every command."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from setpoint.app import DEFAULT_STORE, Settings
from setpoint.cli.states import Exit
from setpoint.core.durations import seconds_of
from setpoint.engine.plain import plain_kinds
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import CookieLocation, World
from setpoint.errors import ManifestInvalid, SetpointError

_PIPE_WIDTH = 200


@dataclass(frozen=True, slots=True)
class Request:
    """A command's options. `console` is standard output."""

    settings: Settings
    console: Console
    files: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    namespace: str | None = "default"
    output: str = "table"
    wait: bool = True
    watch: bool = False
    seconds: float = 300.0

    @staticmethod
    def of(options: dict[str, Any]) -> "Request":
        """The request that the options of a command line make."""
        settings = Settings(
            options["store"] or DEFAULT_STORE, CookieLocation(options["cookies"]), environment=dict(os.environ)
        )
        return Request(
            settings,
            console_for(sys.stdout.isatty()),
            tuple(options.get("files", ())),
            tuple(options.get("targets", ())),
            None if options.get("all_namespaces") else options.get("namespace", "default"),
            options.get("output", "table"),
            options.get("wait", True),
            options.get("watch", False),
            seconds_of(options.get("timeout", "5m")),
        )


def console_for(is_terminal: bool) -> Console:  # noqa: FBT001  # there is only this to know
    """Standard output: a terminal as wide as it is, a pipe as wide as lines get."""
    return Console(highlight=False) if is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


Command = Callable[[Request], Awaitable[Exit]]


def carry_out(command: Callable[[Request], Awaitable[int]], options: dict[str, Any]) -> int:
    """The exit code of `command`; an error of ours is one line on standard error, never a traceback."""
    try:
        return asyncio.run(_awaited(command, Request.of(options)))
    except SetpointError as error:
        Console(stderr=True, highlight=False).print(Text(f"error: {error}", style="red"), soft_wrap=True)
        return Exit.FAILED
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: what was begun is on record, and the next run goes on\n")
        return 130


async def _awaited(command: Callable[[Request], Awaitable[int]], request: Request) -> int:
    return await command(request)


def target_ref(target: str, namespace: str | None, world: World) -> ResourceRef:
    """The resource that KIND/NAME names; the kind in any case, singular or plural."""
    kind, slash, name = target.partition("/")
    if not slash or not name:
        raise ManifestInvalid(f"{target!r} names no resource: write KIND/NAME, such as StorageBucket/logs")
    group, exact = kind_named(kind, world)
    return ResourceRef(group, exact, namespace or "default", name)


def kind_named(word: str, world: World) -> tuple[str, str]:
    """The group and name of the kind that `word` means."""
    return one_of(word, [*world.sorts, *plain_kinds(world)])


def one_of(word: str, kinds: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The one of these kinds that `word` means, in any case, singular or plural."""
    known = {name.lower(): (group, name) for group, name in kinds}
    found = known.get(word.lower()) or known.get(word.lower().removesuffix("s"))
    if found is None:
        names = ", ".join(sorted(name for _, name in known.values()))
        raise ManifestInvalid(f"no kind {word!r} is known here; there is {names}")
    return found
