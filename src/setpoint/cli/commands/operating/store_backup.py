"""`setpoint backup` and `setpoint restore`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from setpoint.app.settings import store_file
from setpoint.app.store_backup import BackupRecord, Progress, RestoredStore, back_up, restore
from setpoint.cli.request import CommandRequest, print_json, run_command
from setpoint.cli.views.terminal import error_console
from setpoint.library.outcome import ExitCode

# Stores below 40 MB are copied before a line is read.
_SILENT_PAGES = 10_000


def backup_store(options: dict[str, Any]) -> int:
    """The exit code of `setpoint backup`."""
    return run_command(lambda request: _back_up(request, Path(options["file"]), force=options["force"]), options)


def restore_store(options: dict[str, Any]) -> int:
    """The exit code of `setpoint restore`."""
    return run_command(lambda request: _restore(request, Path(options["file"])), options)


async def _back_up(request: CommandRequest, to: Path, *, force: bool) -> ExitCode:
    with _progress() as progress:
        record = back_up(request.settings, to, progress, replaces=force)
    if request.output == "json":
        print_json({**_data(record), "file": str(to)}, request)
        return ExitCode.DONE
    _print(request, f"{_resources(record.resources)} in {to}, which only you can read. It is whole, and checked")
    if record.is_encrypted:
        _print(request, f"Its secret values are encrypted with the key in {to}.key: a restore elsewhere needs both")
    return ExitCode.DONE


async def _restore(request: CommandRequest, backup: Path) -> ExitCode:
    done = restore(request.settings, backup)
    store, age = store_file(request.settings), _age(done.record.made_at, request.settings.clock.now())
    if request.output == "json":
        kept = None if done.kept is None else str(done.kept)
        data = {**_data(done.record), "store": str(store), "storeVersion": done.version, "ageSeconds": age}
        print_json({**data, "replacedStore": kept}, request)
        return ExitCode.DONE
    _print(request, f"{_resources(done.record.resources)} restored into {store}, as of {done.record.made_at}")
    _print(request, f"The backup is {_duration(age)} old, and was made by setpoint {done.record.setpoint}")
    for line in _more(done):
        _print(request, line)
    return ExitCode.DONE


def _more(done: RestoredStore) -> Iterator[str]:
    if done.version != done.record.version:
        yield f"It was of version {done.record.version}, and was brought up to version {done.version}"
    if done.kept is not None:
        yield f"The store that it replaced is kept as {done.kept}"
    yield "`setpoint plan --all` shows what the world differs in; what was declared since then is not known here"


def _data(record: BackupRecord) -> dict[str, Any]:
    return {
        "madeAt": record.made_at,
        "setpoint": record.setpoint,
        "version": record.version,
        "resources": record.resources,
        "rows": dict(record.rows),
        "digest": f"sha256:{record.digest}",
        "encrypted": record.is_encrypted,
    }


def _print(request: CommandRequest, line: str) -> None:
    request.console.print(Text(line), soft_wrap=True)


def _resources(number: int) -> str:
    return f"{number} resource{'' if number == 1 else 's'}"


def _age(then: str, now: str) -> int:
    return max(0, round((datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds()))


def _duration(seconds: int) -> str:
    """The two largest units: `3d 4h`, `2h 5m`, `12s`."""
    units = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
    parts = list[str]()
    for name, size in units:
        number, seconds = divmod(seconds, size)
        if number or parts:
            parts.append(f"{number}{name}")
    return " ".join(part for part in parts[:2] if not part.startswith("0")) or "0s"


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal; in a pipe a line for each tenth of a large store."""
    console = error_console()
    if not console.is_terminal:
        yield _lines()
        return
    from rich.progress import Progress as Bar

    with Bar(console=console, transient=True) as bar:
        task = bar.add_task("copying")
        yield lambda copied, total: bar.update(task, completed=copied, total=total)


def _lines() -> Progress:
    printed = 0

    def show(copied: int, total: int) -> None:
        nonlocal printed
        tenth = copied * 10 // max(1, total)
        if total > _SILENT_PAGES and tenth > printed:
            printed = tenth
            error_console().print(Text(f"{tenth}0 % copied"), soft_wrap=True)

    return show
