"""What every command shares: its checked options, its session, printed data, and the exit code."""

import asyncio
import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, Any

import click
import orjson

from setpoint.app import DEFAULT_STORE, AppSettings, default_namespace, tenancy_from
from setpoint.cli.output_pipes import PipeWriter, output_pipe
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import parse_duration_text
from setpoint.core.values.json_types import Json
from setpoint.core.values.messages import printable
from setpoint.core.values.problems import problems_of
from setpoint.engine.management import CookieLocation
from setpoint.engine.resource import DEFAULT_NAMESPACE
from setpoint.errors import ManifestInvalid, SetpointError, UserError
from setpoint.library.outcome import ExitCode
from setpoint.library.targets import Selection, is_kind_word

# Imported where a command uses it: others do without.
if TYPE_CHECKING:
    from setpoint.cli.views.terminal import SafeConsole
    from setpoint.library.manifests.reading import ReadManifests
    from setpoint.library.selecting.resource_filter import ResourceFilter
    from setpoint.library.session import Session
    from setpoint.library.sets.scope import SetScope

_PIPE_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """The options of a command, checked. A `namespace` of None means all of them; a `given_console` is used instead of
    standard output.
    """

    settings: AppSettings
    given_console: "SafeConsole | None" = None
    files: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    namespace: str | None = DEFAULT_NAMESPACE
    output: str = "table"
    wait: bool = True
    watch: bool = False
    seconds: float = 300.0
    # Whether secret values are printed.
    show_secrets: bool = False
    # Only what is not done is printed, and the summary.
    quiet: bool = False
    # Of `delete`: nothing is deleted; nothing is asked; what is not declared is no error.
    dry_run: bool = False
    yes: bool = False
    ignore_not_found: bool = False
    # Of `apply` and `plan`: what the manifests are all of.
    scope: "SetScope | None" = None
    # The labels and fields that a resource has to have; None for any.
    filter: "ResourceFilter | None" = None
    # The field that resources are sorted by.
    sort_by: str | None = None
    _consoles: "list[SafeConsole]" = field(default_factory=list)

    @property
    def console(self) -> "SafeConsole":
        """Standard output, or the console that was given: made when it is first used, which a controller does not."""
        if not self._consoles:
            self._consoles.append(self.given_console or console_for(sys.stdout.isatty()))
        return self._consoles[0]

    @staticmethod
    def of(options: dict[str, Any]) -> "CommandRequest":
        """The request made by the options of a command line."""
        settings = AppSettings(
            options["store"] or DEFAULT_STORE,
            CookieLocation(options["cookies"]),
            environment=dict(os.environ),
            warn=warn_once(),
            tenancy=tenancy_from(os.environ, options.get("tenancy") or ""),
        )
        return CommandRequest(
            settings,
            None,
            *files_and_targets(options),
            None if options.get("all_namespaces") else options.get("namespace") or default_namespace(settings),
            options.get("output", "table"),
            options.get("wait", True),
            options.get("watch", False),
            duration_option("--timeout", options.get("timeout", "5m")),
            options.get("show_secrets", False),
            options.get("quiet", False),
            options.get("dry_run", False),
            options.get("yes", False),
            options.get("ignore_not_found", False),
            _scope_of(options),
            _filter_of(options),
            options.get("sort_by"),
        )


def _filter_of(options: dict[str, Any]) -> "ResourceFilter | None":
    """The labels and fields that a command selects by; without --prune, -l of `plan` is one of them."""
    labels = options.get("selector") or (options.get("labels") if not options.get("prune") else None)
    fields = options.get("field_selector")
    if labels is None and fields is None:
        return None
    from setpoint.library.selecting.resource_filter import ResourceFilter

    return ResourceFilter.parse(labels, fields)


def _scope_of(options: dict[str, Any]) -> "SetScope | None":
    """The set or the labels that a command names; ManifestInvalid for options that do not go together."""
    names = ("labels", "prune", "adopt", "allow_empty")
    is_named = options.get("set_name") is not None
    if "prune" not in options or not (is_named or any(options.get(name) for name in names)):
        return None
    from setpoint.engine.sets.resource_set import require_set_name
    from setpoint.library.sets.scope import SetScope, parse_labels

    if is_named:
        # A variable of a script may be empty: that is no command without a set.
        require_set_name(options["set_name"])
    if _selects_declared(options):
        return None
    if options["labels"] and not options["prune"]:
        raise ManifestInvalid("-l says what is pruned: write it with --prune, or leave it out")
    return SetScope(
        options["set_name"] or "",
        parse_labels(options["labels"]) if options["labels"] else {},
        options["prune"],
        options["adopt"],
        options["allow_empty"],
    )


def _selects_declared(options: dict[str, Any]) -> bool:
    """Whether -l is of resources that are declared: without files there are no manifests to be all of."""
    names = ("set_name", "prune", "adopt", "allow_empty")
    has_files = bool(files_and_targets(options)[0])
    return "targets" in options and not has_files and not any(options.get(name) for name in names)


def read_request_files(request: CommandRequest) -> "ReadManifests":
    """The manifests in the files of a command; those that name no namespace are in the one that the command names."""
    from setpoint.library.manifests.reading import read_manifests
    from setpoint.library.manifests.sources import ManifestFile

    namespace = request.namespace or default_namespace(request.settings)
    allow_empty = request.scope is not None and request.scope.allow_empty
    return read_manifests(list(map(ManifestFile, request.files)), namespace, allow_empty=allow_empty)


def selection_of(request: CommandRequest) -> Selection:
    """What the command is about: the manifests in its files, and its KIND/NAME targets."""
    return Selection(read_request_files(request) if request.files else None, request.targets, request.namespace)


def selects(request: CommandRequest) -> bool:
    """Whether a command is about all resources of a kind, or those with labels or fields."""
    return request.filter is not None or any(is_kind_word(one) for one in request.targets)


async def selected(request: CommandRequest, session: "Session") -> Selection:
    """What a command is about, with the resources that it names by kind, labels or fields."""
    if not selects(request):
        return selection_of(request)
    from setpoint.cli.selecting import declared_selection

    return await declared_selection(request, session)


def open_session(request: CommandRequest) -> "Session":
    """The session of a command, which closes with it."""
    from setpoint.library.session import Session

    namespace = request.namespace or default_namespace(request.settings)
    return Session(request.settings, namespace, owns_process=True)


def duration_option(name: str, text: str) -> float:
    """The seconds that an option names; ManifestInvalid has the name of the option."""
    try:
        return parse_duration_text(text)
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{name}: {error}") from error


# KIND/NAME. What does not look like it, and is a path, is one.
_TARGET = re.compile(r"[A-Za-z][A-Za-z0-9.]*/[^/]+")
_KINDS = re.compile(r"[A-Za-z][A-Za-z0-9.]*(?:,[A-Za-z][A-Za-z0-9.]*)+")


def files_and_targets(options: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of a command, after `-f` or by themselves, and its KIND/NAME targets."""
    files, targets = (*options.get("files", ()), *options.get("paths", ())), tuple(options.get("targets", ()))
    targets = tuple(one for word in targets for one in _kinds_in(word))
    if "files" not in options:
        return files, targets
    by_themselves = [one for one in targets if _is_file(one, takes_kinds=options.get("takes_kinds", False))]
    return (*files, *by_themselves), tuple(one for one in targets if one not in by_themselves)


def _kinds_in(word: str) -> Sequence[str]:
    """The kinds of `SQLInstance,StorageBucket`; any other word is one by itself."""
    return word.split(",") if _KINDS.fullmatch(word) and not os.path.exists(word) else (word,)


def _is_file(word: str, *, takes_kinds: bool) -> bool:
    """Whether a word is a file or folder. With `takes_kinds`, a word alone may be a kind, and is no folder then."""
    from setpoint.library.manifests.reading import SUFFIXES

    exists = os.path.exists(word)
    if word.endswith(SUFFIXES):
        return exists or not _TARGET.fullmatch(word)
    is_kind = takes_kinds and word.isalnum()
    return word == "-" or (not (is_kind or _TARGET.fullmatch(word)) and exists)


def warn_once() -> Callable[[str], None]:
    """Prints each warning once, on standard error."""
    printed = set[str]()

    def warn(text: str) -> None:
        if text not in printed:
            printed.add(text)
            _print_error(f"warning: {text}", "yellow")

    return warn


def _print_error(text: str, style: str) -> None:
    """Prints a line on standard error."""
    from rich.text import Text

    from setpoint.cli.views.terminal import error_console

    error_console().print(Text(text, style=style), soft_wrap=True)


def console_for(is_terminal: bool) -> "SafeConsole":  # noqa: FBT001  # there is only this to know
    """The console of standard output: as wide as a terminal is; wide enough for any line in a pipe."""
    from setpoint.cli.views.terminal import SafeConsole

    return SafeConsole() if is_terminal else SafeConsole(width=_PIPE_COLUMNS)


class _PrintableFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The record with its traceback, without what a terminal interprets."""
        return printable(super().format(record))


def make_logging_printable() -> None:
    """For warnings of libraries in commands that configure no logging: Python prints them on standard error."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_PrintableFormatter())


# --- Running ----------------------------------------------------------------------------------------------------------

Command = Callable[[CommandRequest], Awaitable[int]]


def run_command(command: Command, options: dict[str, Any]) -> int:
    """The exit code of `command`; an error is a line on standard error for each mistake, never a traceback."""
    make_logging_printable()
    try:
        with _traced() as ended:
            code = asyncio.run(_run_async(command, CommandRequest.of(options)))
            ended(code)
            return code
    except SetpointError as error:
        for one in problems_of(error) if isinstance(error, UserError) else (error,):
            _print_error(f"error: {one}", "red")
        return ExitCode.FAILED
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: what was begun is on record, and the next run goes on\n")
        return 130


# Any of them asks for traces; OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none do without.
_TRACE_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_WITHOUT_SPAN = (["run"], ["dashboard"])


def _traced() -> AbstractContextManager[Callable[[int], None]]:
    """Traces the command, where the environment names a collector. Its value is told the exit code."""
    environment = os.environ
    exporter, is_disabled = environment.get("OTEL_TRACES_EXPORTER", ""), environment.get("OTEL_SDK_DISABLED", "")
    is_asked = exporter == "otlp" or (not exporter and any(environment.get(name) for name in _TRACE_VARIABLES))
    if not is_asked or is_disabled.lower() == "true":
        return nullcontext(_untraced)
    try:
        from setpoint.runtime.tracing import tracing
    except ImportError:
        warn_once()("the environment asks for traces, and OpenTelemetry is not here: pip install 'setpoint[otel]'")
        return nullcontext(_untraced)
    return tracing(environment, _traced_command())


def _untraced(_code: int) -> None:
    """Without a trace, no exit code is told."""


def _traced_command() -> str:
    """The words of the command, which has a span; empty for one that goes on, whose steps are traces of their own."""
    context, words = click.get_current_context(silent=True), list[str]()
    while context is not None and context.parent is not None:
        words.insert(0, context.info_name or "")
        context = context.parent
    return "" if words[:1] in _WITHOUT_SPAN else " ".join(words)


async def _run_async(command: Command, request: CommandRequest) -> int:
    pipe = output_pipe() if request.watch else None
    return await (command(request) if pipe is None else _until_unread(command(request), pipe))


async def _until_unread(watching: Awaitable[int], pipe: PipeWriter) -> int:
    """The exit code of a command that only prints changes: it ends with the reader of its output."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(watching)

    def end() -> None:
        pipe.is_broken = True
        loop.remove_reader(pipe)
        task.cancel()

    # The end of a pipe that is written to becomes readable only when the other end is closed.
    loop.add_reader(pipe, end)
    try:
        return await task
    except asyncio.CancelledError:
        if not pipe.is_broken:
            raise
        return ExitCode.DONE
    finally:
        loop.remove_reader(pipe)


def print_documents(documents: list[Json], request: CommandRequest) -> None:
    """Prints a list, or the one document that was named.

    With `--watch` every document is printed by itself, in JSON on one line each.
    """
    if request.watch:
        for one in documents:
            request.console.out(orjson.dumps(one).decode() if request.output == "json" else f"---\n{_in_yaml(one)}")
    elif len(documents) == 1 and names_one(request):
        print_document(documents[0], request)
    else:
        print_document(documents, request)


def names_one(request: CommandRequest) -> bool:
    """Whether the targets are a single KIND/NAME, and can be only one resource."""
    names = [target.partition("/")[2] for target in request.targets]
    return len(names) == 1 and bool(names[0]) and not request.files and request.namespace is not None


def print_document(document: Json, request: CommandRequest) -> None:
    """Prints a document as `--output` says: JSON, or YAML."""
    if request.output == "json":
        print_json(document, request)
    else:
        request.console.out(_in_yaml(document))


def _in_yaml(document: Json) -> str:
    from setpoint.core.values.yaml_documents import write_document

    return write_document(document)


def print_json(document: Json, request: CommandRequest) -> None:
    """Prints indented JSON."""
    request.console.out(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
