"""What a shell offers for a word: kinds, resources, sets, namespaces, fields. The store is read, and not changed."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from setpoint.app import DEFAULT_STORE, AppSettings
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.kind import ResourceType
from setpoint.engine.management import CookieLocation
from setpoint.engine.resource import ResourceRef
from setpoint.errors import SetpointError

if TYPE_CHECKING:
    from setpoint.library.session import Session

# More are of no use on a screen.
_MOST: Final = 500
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class _Known:
    """The kinds, and what is declared."""

    types: Mapping[GroupKind, ResourceType]
    refs: Sequence[ResourceRef]

    @property
    def kinds(self) -> Sequence[str]:
        """The names of the kinds."""
        return [kind for _, kind in self.types]


def complete_targets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Kinds, or the resources of the one kind that is meant; after a comma another kind. Else files."""
    first, comma, last = incomplete.rpartition(",")
    known = _known(context)
    kind, slash, name = last.partition("/")
    if slash:
        found = [ref for ref in known.refs if ref.kind.lower() == kind.lower() and ref.name.startswith(name)]
        return _items(f"{kind}/{ref.name}" for ref in found) or _files(context, incomplete)
    named = sorted(one for one in known.kinds if one.lower().startswith(last.lower()))
    declared = {ref.kind for ref in known.refs}
    # Without a letter, kinds that are declared: all of them are hundreds.
    offered = [one for one in named if last or one in declared]
    if len(offered) == 1 and not comma:
        offered += [f"{ref.kind}/{ref.name}" for ref in known.refs if ref.kind == offered[0]]
    return _items(f"{first}{comma}{one}" for one in offered) or _files(context, incomplete)


def _files(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Whatever the shell finds, for commands that take files by themselves."""
    takes_files = any(one.name == "files" for one in context.command.params)
    return [CompletionItem(incomplete, type="file")] if takes_files else []


def complete_files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Whatever the shell finds."""
    return [CompletionItem(incomplete, type="file")]


def complete_kinds(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The kinds that are installed; after a comma another one."""
    first, comma, last = incomplete.rpartition(",")
    return _items(f"{first}{comma}{one}" for one in _installed(last)) or complete_files(
        _context, _parameter, incomplete
    )


def _installed(begun: str) -> list[str]:
    from setpoint.app import all_plugins
    from setpoint.app.kinds import known_names

    return sorted(kind for _, kind in known_names(all_plugins()) if kind.lower().startswith(begun.lower()))


def complete_kind_fields(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The kinds that are installed; after a dot their fields."""
    kind, dot, path = incomplete.partition(".")
    if not dot:
        return _items(_installed(kind))
    from setpoint.app import all_plugins
    from setpoint.app.kind_reference import known_kinds
    from setpoint.app.kinds import known_names, named_kind
    from setpoint.cli.field_completion import field_steps

    plugins = all_plugins()
    name = named_kind(kind, known_names(plugins))
    code = None if name is None else known_kinds(plugins, [name]).kinds[name].code
    steps = [] if code is None else field_steps(path, [code], objects=True)
    return _items(f"{kind}.{one}" for one in steps)


def complete_namespaces(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The namespaces of what is declared."""
    refs = _known(context, everywhere=True).refs
    return _items(sorted({ref.namespace for ref in refs if ref.namespace.startswith(incomplete)}))


def complete_sets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The sets on record."""

    async def names(session: "Session") -> Sequence[str]:
        return [one.name for one in await session.sets()]

    none: Sequence[str] = ()
    return _items(one for one in _read(context, names, none) if one.startswith(incomplete))


def complete_fields(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names and paths of fields, and the values that are known of one."""
    from setpoint.library.selecting.field_selector import FIELDS, STATES

    before, comma, last = incomplete.rpartition(",")
    name, sign, value = last.partition("=")
    values: Iterable[str] = ()
    if not sign:
        offered = [*(f"{one}=" for one in FIELDS), *_paths(context, last, end="=")]
    else:
        if name.removesuffix("!") == "state":
            values = STATES
        elif name.removesuffix("!") in ("kind", "namespace", "name"):
            refs = _known(context, everywhere=True).refs
            values = sorted({str(getattr(ref, name.removesuffix("!"))) for ref in refs})
        offered = [f"{name}={one}" for one in values if one.startswith(value)]
    return _items(f"{before}{comma}{one}" for one in offered if one.startswith(last))


def complete_sort_paths(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The paths of fields, with a dot before them."""
    return _items(f".{one}" for one in _paths(context, incomplete.removeprefix(".")))


def _paths(context: click.Context, begun: str, *, end: str = "") -> list[str]:
    """The paths that a word goes on to, of the kinds that the line names, else of those that are declared."""
    from setpoint.app.kinds import named_kind
    from setpoint.cli.field_completion import field_steps

    known = _known(context)
    words = [word for given in context.params.get("targets") or () for word in given.partition("/")[0].split(",")]
    named = [one for word in words if (one := named_kind(word, known.types)) is not None]
    declared = {ref.group_kind for ref in known.refs}
    return field_steps(begun, [known.types[one] for one in named or sorted(declared) if one in known.types], end=end)


def _items(words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(one) for one in list(dict.fromkeys(words))[:_MOST]]


def _known(context: click.Context, *, everywhere: bool = False) -> _Known:
    """The kinds, and what is declared; nothing where the store cannot be read."""
    everywhere = everywhere or bool(context.params.get("all_namespaces"))

    async def known(session: "Session") -> _Known:
        listing = await session.list(all_namespaces=everywhere)
        async with session.reading() as engine:
            return _Known(engine.resource_types, [one.ref for one in listing])

    return _read(context, known, _Known({}, ()))


def _read(context: click.Context, read: "Callable[[Session], Awaitable[_Read]]", otherwise: _Read) -> _Read:
    """What a session reads from the store; something else where it cannot be read."""
    try:
        return asyncio.run(_read_store(context, read))
    except (SetpointError, OSError):
        # A message would be in the line that the user is writing.
        return otherwise


async def _read_store(context: click.Context, read: "Callable[[Session], Awaitable[_Read]]") -> _Read:
    from setpoint.library.session import Session

    store = context.find_root().params.get("store") or DEFAULT_STORE
    settings = AppSettings(store, CookieLocation.STATUS, environment=dict(os.environ), warn=lambda _: None)
    async with Session(settings, context.params.get("namespace"), owns_process=True) as session:
        return await read(session)
