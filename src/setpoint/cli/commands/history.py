"""`setpoint history`: what happened to a resource, from the store, beside a running process or without one."""

from datetime import UTC, datetime
from typing import Any, Final

from rich.text import Text

from setpoint.cli.request import (
    CommandRequest,
    duration_option,
    open_session,
    print_document,
    print_documents,
    run_command,
)
from setpoint.cli.views.history import HistoryView
from setpoint.cli.views.terminal import error_console
from setpoint.core.values.durations import DURATION_ADVICE, rfc3339
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import Revision
from setpoint.errors import ManifestInvalid
from setpoint.library.inspection.history import HistoryListing
from setpoint.library.outcome import ExitCode
from setpoint.library.session import Session

_OUTSIDE: Final = (
    "the store is in a cluster: histories are in the memory of its controllers, and their dashboard shows them. "
    "These are the record of the last step, and the Events, which a cluster keeps for an hour as a rule."
)
# Of one change in the store: a commit adds few entries.
_NEW_AT_ONCE: Final = 1_000


def show_history(options: dict[str, Any]) -> int:
    """The exit code: 0, also for a declared resource that has no history yet; 1 for a wrong option or name."""
    since_text, limit = options["since"], options["limit"]

    async def show(request: CommandRequest) -> ExitCode:
        since = "" if since_text is None else since_time(since_text, request.settings.clock.now())
        async with open_session(request) as session:
            await _show(session, request, since, limit)
        return ExitCode.DONE

    return run_command(show, options)


def since_time(text: str, now: str) -> str:
    """The time that `--since` names, as the entries of histories have it: a duration before `now`, or a time."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            at = datetime.fromtimestamp(datetime.fromisoformat(now).timestamp() - duration_option("--since", text), UTC)
        except (ManifestInvalid, OverflowError, OSError, ValueError):
            raise ManifestInvalid(
                f"--since: {text!r} is neither a duration ({DURATION_ADVICE}) nor a time such as 2026-01-31T12:00Z"
            ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return rfc3339(int(at.timestamp()))


async def _show(session: Session, request: CommandRequest, since: str, limit: int) -> None:
    (target,) = request.targets
    if not target.partition("/")[2]:
        raise ManifestInvalid(f"{target!r} names no resource: write KIND/NAME, such as StorageBucket/logs")
    table = HistoryView(wide=request.output == "wide")
    # Before the history is read: a watch from here misses nothing.
    start = (await session.list(target, ignore_not_found=True)).revision if request.watch else None
    found = await session.history(target, most=limit, since=since)
    if not found.entries and not request.watch:
        # An error where the resource is not declared, either: a name that was mistyped has no history.
        await session.list(target)
    if not found.is_complete:
        error_console().print(Text(f"note: {_OUTSIDE}", style="yellow"), soft_wrap=True)
    _print(found, table, request)
    if start is not None:
        await _follow(session, request, found, table, since=start)


async def _follow(
    session: Session, request: CommandRequest, shown: HistoryListing, table: HistoryView, *, since: Revision
) -> None:
    """Prints what follows. Entries are numbered in a store, and Events of a cluster are not."""
    (target,) = request.targets
    last, seen = max((one.number for one in shown), default=0), set(map(repr, shown))
    async for _ in session.watch(target, since=since):
        found = await session.history(target, most=_NEW_AT_ONCE)
        is_new = [one for one in found if (one.number > last if found.is_complete else repr(one) not in seen)]
        last = max((one.number for one in found), default=last)
        seen.update(map(repr, is_new))
        if is_new:
            _print(HistoryListing(found.ref, tuple(is_new)), table, request)


def _print(found: HistoryListing, table: HistoryView, request: CommandRequest) -> None:
    listing = HistoryListing(found.ref, tuple(reversed(found.entries)))
    if request.output not in ("json", "yaml"):
        request.console.print(table.lines(listing), soft_wrap=True)
        return
    documents = listing.to_data()
    assert isinstance(documents, list)
    entries: list[Json] = documents
    if request.watch:
        print_documents(entries, request)
    else:
        print_document(entries, request)
