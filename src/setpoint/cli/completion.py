"""What a shell offers for a word: kinds, resources, namespaces and fields, read from the store without changing it."""

import asyncio
import os
from collections.abc import Iterable, Sequence

import click
from click.shell_completion import CompletionItem

from setpoint.app import DEFAULT_STORE, AppSettings
from setpoint.engine.management import CookieLocation
from setpoint.engine.resource import ResourceRef
from setpoint.errors import SetpointError

# More are of no use on a screen.
_MOST = 500


def complete_targets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Kinds, or the resources of the one kind that is meant; after a comma another kind."""
    first, comma, last = incomplete.rpartition(",")
    kinds, refs = _known(context)
    kind, slash, name = last.partition("/")
    if slash:
        found = (ref for ref in refs if ref.kind.lower() == kind.lower() and ref.name.startswith(name))
        return _items(f"{kind}/{ref.name}" for ref in found)
    named = sorted(one for one in kinds if one.lower().startswith(last.lower()))
    declared = {ref.kind for ref in refs}
    # Without a letter, kinds that are declared: all of them are hundreds.
    offered = [one for one in named if last or one in declared]
    if len(offered) == 1 and not comma:
        offered += [f"{ref.kind}/{ref.name}" for ref in refs if ref.kind == offered[0]]
    return _items(f"{first}{comma}{one}" for one in offered)


def complete_namespaces(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The namespaces of what is declared."""
    _, refs = _known(context, everywhere=True)
    return _items(sorted({ref.namespace for ref in refs if ref.namespace.startswith(incomplete)}))


def complete_fields(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of fields, and the values that are known of one."""
    from setpoint.library.selecting.field_selector import FIELDS, STATES

    before, comma, last = incomplete.rpartition(",")
    name, sign, value = last.partition("=")
    values: Iterable[str] = ()
    if name.removesuffix("!") == "state":
        values = STATES
    elif sign and name.removesuffix("!") in ("kind", "namespace", "name"):
        _, refs = _known(context, everywhere=True)
        values = sorted({str(getattr(ref, name.removesuffix("!"))) for ref in refs})
    offered = [f"{name}={one}" for one in values if one.startswith(value)] if sign else [f"{one}=" for one in FIELDS]
    return _items(f"{before}{comma}{one}" for one in offered if one.startswith(last))


def _items(words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(one) for one in list(dict.fromkeys(words))[:_MOST]]


def _known(context: click.Context, *, everywhere: bool = False) -> tuple[Sequence[str], Sequence[ResourceRef]]:
    """The names of the kinds, and what is declared; nothing where the store cannot be read."""
    try:
        return asyncio.run(_read(context, everywhere=everywhere or bool(context.params.get("all_namespaces"))))
    except (SetpointError, OSError):
        # A message would be in the line that the user is writing.
        return (), ()


async def _read(context: click.Context, *, everywhere: bool) -> tuple[Sequence[str], Sequence[ResourceRef]]:
    from setpoint.library.session import Session

    store = context.find_root().params.get("store") or DEFAULT_STORE
    settings = AppSettings(store, CookieLocation.STATUS, environment=dict(os.environ), warn=lambda _: None)
    async with Session(settings, context.params.get("namespace"), owns_process=True) as session:
        listing = await session.list(all_namespaces=everywhere)
        async with session.reading() as engine:
            return [kind for _, kind in engine.resource_types], [one.ref for one in listing]
