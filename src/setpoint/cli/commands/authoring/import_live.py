"""`setpoint import KIND`: manifests of live objects, into a folder or to standard output; proven by their plans."""

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from setpoint.cli.request import CommandRequest, open_session, print_json, run_command
from setpoint.cli.views.terminal import SafeConsole, error_console
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import Json
from setpoint.core.values.yaml_documents import write_document
from setpoint.engine.importing.proof import ImportOutcome
from setpoint.engine.resource import ResourceRef
from setpoint.errors import UserError
from setpoint.file_creation import create_file
from setpoint.library.inspection.live_import import ImportedManifest, ImportObserver, ImportQuery, LiveImport
from setpoint.library.selecting.field_selector import FieldSelector
from setpoint.library.selecting.label_selector import LabelSelector

_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]*(?:,[A-Za-z][A-Za-z0-9.]*)*")
_FILE_MODE: Final = 0o644
_STYLES: Final = {
    ImportOutcome.UNCHANGED: "green",
    ImportOutcome.DIFFERS: "yellow",
    ImportOutcome.NEEDS_SECRET: "yellow",
    ImportOutcome.FAILED: "red",
}
_OF_EXPORTS: Final = "--overwrite is of an export: name its file with -f, and no kind"
_GLOBAL_ONLY: Final = "only global ones were looked for: name regions and zones by --location, or - for all of them"
_ONE_OF_BOTH: Final = "an import is of live objects, by KIND, or of an export, by -f: name one of both"


def chosen_import(options: Mapping[str, Any]) -> Callable[[dict[str, Any]], int]:
    """The import that a command line asks for: of live objects, where it names kinds; else of an export."""
    from setpoint.cli.commands.transfer import import_resources

    return import_live if options["everything"] or kind_words(options) else import_resources


def kind_words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds that a command line names; a word that is a file, or may be none but a path, is an export."""
    words = tuple(options["paths"])
    kinds = [one for one in words if _KIND.fullmatch(one) and not os.path.exists(one) and not _is_file_name(one)]
    if kinds and (len(kinds) < len(words) or options["files"]):
        raise _as_usage(_ONE_OF_BOTH)
    return tuple(part for one in kinds for part in one.split(","))


def _is_file_name(word: str) -> bool:
    return word.lower().endswith((".yaml", ".yml", ".json"))


def _as_usage(text: str) -> Exception:
    import click

    return click.UsageError(text)


def import_live(options: dict[str, Any]) -> int:
    """The exit code of `setpoint import KIND`."""
    # What they select is live, and not what is declared.
    own: dict[str, Any] = {"paths": (), "files": (), "selector": None, "field_selector": None}
    return run_command(lambda request: _import(request, options), {**options, **own})


async def _import(request: CommandRequest, options: Mapping[str, Any]) -> int:
    query, folder = _query(options), options["to"]
    if folder is not None:
        _require_writable(Path(folder))
    progress = _Progress(None if request.quiet else error_console(), is_by_name=not options["everything"])
    async with open_session(request) as session:
        found = await session.import_live(query, progress)
    if folder is not None:
        files = _files(found, by_kind=options["by"] == "kind")
        write_files(Path(folder), files, force=options["force"])
    elif request.output != "json":
        request.console.write("---\n".join(map(_text, found.manifests)))
    if request.output == "json":
        print_json(_document(found, with_manifests=folder is None), request)
    _summarize(found, folder, error_console(), quiet=request.quiet)
    return found.exit_code


def _query(options: Mapping[str, Any]) -> ImportQuery:
    words = kind_words(options)
    if options["overwrite"]:
        raise UserError(_OF_EXPORTS)
    if options["everything"] and words:
        raise UserError("--all is every kind: name kinds, or --all, and not both")
    places = tuple(one.strip() for text in options["locations"] for one in text.split(",") if one.strip())
    labels, fields = options["selector"], options["field_selector"]
    return ImportQuery(
        options["project"] or "",
        words,
        places,
        LabelSelector.parse(labels) if labels is not None else LabelSelector(),
        FieldSelector.parse(fields, "--filter") if fields is not None else FieldSelector(),
        parent=options["parent"] or "",
    )


class _Progress(ImportObserver):
    """A line for each kind, and how many plans are made, on standard error."""

    def __init__(self, console: SafeConsole | None, *, is_by_name: bool) -> None:
        self._console = console
        self._is_by_name = is_by_name
        self._planned = self._all = 0

    def _say(self, text: str) -> None:
        if self._console is not None:
            self._console.print(Text(text, style="dim"), soft_wrap=True)

    def listed(self, kind: GroupKind, count: int) -> None:
        if count or self._is_by_name:
            self._say(f"{kind[1]}: {count or 'none'} found")

    def planning(self, count: int) -> None:
        self._all = count
        if count:
            self._say(f"planning {count} manifest{'s' * (count != 1)}")

    def planned(self, ref: ResourceRef, outcome: ImportOutcome) -> None:
        self._planned += 1
        if self._planned % 100 == 0:
            self._say(f"{self._planned} of {self._all} planned")


# --- Manifests as text ------------------------------------------------------------------------------------------------


def _text(one: ImportedManifest) -> str:
    """The manifest, after comments that say what it is of, and what it lacks."""
    return "".join(f"# {line}\n" for line in _notes(one)) + write_document(one.manifest)


def _notes(one: ImportedManifest) -> Iterator[str]:
    yield one.location
    if one.outcome is ImportOutcome.NEEDS_SECRET:
        yield f"It cannot be planned yet: {one.error}. Make that Secret first."
    for field in one.secrets:
        yield f"No service tells {field}: to set it, refer to a Secret by valueFrom.secretKeyRef."
    if one.unmanaged:
        yield f"Without the annotation unmanaged, applying it would change {', '.join(one.unmanaged)}."
    if one.fields:
        yield f"Applying it changes {', '.join(one.fields)}."
    if one.outcome is ImportOutcome.FAILED:
        yield f"It cannot be planned: {one.error}"


def _document(found: LiveImport, *, with_manifests: bool) -> Json:
    summary = found.to_data()
    assert isinstance(summary, dict)
    manifests: list[Json] = [dict(one.manifest) for one in found.manifests]
    return {**summary, **({"manifests": manifests} if with_manifests else {})}


# --- Files ------------------------------------------------------------------------------------------------------------


def _files(found: LiveImport, *, by_kind: bool) -> Mapping[str, str]:
    """The text of each file, by its name."""
    texts: dict[str, list[str]] = {}
    for one in found.manifests:
        kind = one.ref.kind.lower()
        texts.setdefault(f"{kind}.yaml" if by_kind else f"{kind}-{one.ref.name}.yaml", []).append(_text(one))
    return {name: "---\n".join(parts) for name, parts in texts.items()}


def _require_writable(folder: Path) -> None:
    """UserError for a folder that cannot be made, or written to: before all objects are asked for."""
    there = next(one for one in (folder, *folder.absolute().parents) if os.path.lexists(one))
    if not there.is_dir():
        raise _not_writable(folder, os.strerror(errno.ENOTDIR))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _not_writable(folder, os.strerror(errno.EACCES))


def _not_writable(folder: Path, why: str | None) -> UserError:
    return UserError(f"--to {folder}: {why}: name a folder that you can write to")


def write_files(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Writes what is not there yet, each file at once; UserError, before any, for one that is there and differs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {name: text for name, text in files.items() if _current(folder / name) != text}
        there = [name for name in wanted if (folder / name).exists()]
        if there and not force:
            raise UserError(_in_the_way(folder, there))
        for name, text in wanted.items():
            _write(folder / name, text)
    except OSError as error:
        raise _not_writable(folder, error.strerror) from error


def _in_the_way(folder: Path, names: Sequence[str]) -> str:
    return f"--to {folder}: {_some_of(names)} would be replaced: --force does that; nothing was written"


def _current(file: Path) -> str | None:
    try:
        return file.read_text(errors="replace")
    except FileNotFoundError:
        return None


def _write(file: Path, text: str) -> None:
    """Atomically: a process that is killed leaves the whole file, or none. Run again, it writes those that lack."""
    # Its name does not end as that of a manifest does.
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        create_file(fresh, [text.encode()], mode=_FILE_MODE)
        fresh.replace(file)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


# --- The summary ------------------------------------------------------------------------------------------------------


def _summarize(found: LiveImport, folder: str | None, console: SafeConsole, *, quiet: bool) -> None:
    for text, style in _lines(found):
        console.print(Text(text, style=style), soft_wrap=True)
    if not quiet:
        where = "" if folder is None else f" in {folder}"
        number, counts = len(found.manifests), _counts(found.manifests)
        text = f"{number} manifest{'s' * (number != 1)}{where}" + (f"; applied, {counts}" if counts else "")
        console.print(Text(text), soft_wrap=True)


def _counts(manifests: Iterable[ImportedManifest]) -> str:
    words = [one.outcome for one in manifests]
    told = {
        ImportOutcome.UNCHANGED: "would change nothing",
        ImportOutcome.DIFFERS: "would change fields",
        ImportOutcome.NEEDS_SECRET: "would wait for a Secret",
        ImportOutcome.FAILED: "would fail",
    }
    return ", ".join(f"{words.count(one)} {text}" for one, text in told.items() if one in words)


def _lines(found: LiveImport) -> Iterator[tuple[str, str]]:
    for one in found.manifests:
        if one.outcome is not ImportOutcome.UNCHANGED:
            why = one.error or f"applying it changes {', '.join(one.fields)}"
            yield f"{one.ref}: {one.outcome.value}: {why}", _STYLES[one.outcome]
        elif one.explicit:
            yield f"{one.ref}: written out, so that nothing changes: {', '.join(one.explicit)}", "dim"
    for skipped in found.skipped:
        style = "dim" if skipped.declared else "red"
        yield f"{skipped.kind} {skipped.location}: left out: {skipped.why}", style
    for why in dict.fromkeys(found.unlisted.values()):
        kinds = [kind for kind, other in found.unlisted.items() if other == why]
        yield f"{_some_of(kinds)}: not listed: {why}", "red" if found.is_by_name else "yellow"
    if found.global_only:
        yield f"{_some_of(found.global_only)}: {_GLOBAL_ONLY}", "yellow"


def _some_of(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
