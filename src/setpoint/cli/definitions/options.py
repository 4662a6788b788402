"""Options that several commands share, and how a command is declared: its help text, its module, its exit code.

The help texts are in `entry`, where `setpoint --help` is answered without click.
"""

import gc
from collections.abc import Awaitable, Callable, Sequence
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from setpoint.cli.entry import COMMAND_HELP, COOKIE_HELP, STORE_HELP, TENANCY_HELP

if TYPE_CHECKING:
    from setpoint.cli.request import CommandRequest

F = TypeVar("F", bound=Callable[..., None])


def completed_by(words: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What completes a word; its module is imported when a shell asks."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        completion = import_module("setpoint.cli.completion")
        found: list[CompletionItem] = getattr(completion, f"complete_{words}")(context, parameter, incomplete)
        return found

    return complete


class OutputForm(click.ParamType[str]):
    """A form by its name, or one with what follows it: `jsonpath={.spec}`."""

    name = "form"

    def __init__(self, words: Sequence[str], prefixes: Sequence[str]) -> None:
        self._words, self._prefixes = words, prefixes

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # as click calls it
        """See ParamType."""
        return "FORM"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See ParamType."""
        word, sign, rest = value.partition("=")
        if value in self._words or (word in self._prefixes and sign and rest):
            return value
        return self.fail(self._problem(value), param, ctx)

    def _problem(self, value: str) -> str:
        forms = ", ".join((*self._words, *(f"{one}=…" for one in self._prefixes)))
        return f"{value!r} is none of {forms}"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See ParamType."""
        words = (*self._words, *(f"{one}=" for one in self._prefixes))
        return [CompletionItem(one) for one in words if one.startswith(incomplete)]


FILES = click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    shell_complete=completed_by("files"),
    help="A file, a folder, or - for standard input.",
)
# Without -f, too: `apply a.yaml b.yaml`, and what a shell makes of `-f *.yaml`.
PATHS = click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=completed_by("files"))
TARGETS = click.argument("targets", nargs=-1, metavar="[KIND/NAME]...", shell_complete=completed_by("targets"))
# Of commands that take all resources of a kind, too.
SELECTED = click.argument("targets", nargs=-1, metavar="[KIND[/NAME]]...", shell_complete=completed_by("targets"))
WAIT = click.option("--wait/--no-wait", default=True, help="Wait until everything is settled, blocked or failed.")
TIMEOUT = click.option(
    "--timeout",
    default="5m",
    metavar="TIME",
    show_default=True,
    help="How long to wait: 90s, 5m, 1h30m; 30 is seconds.",
)
NAMESPACE = click.option(
    "-n",
    "--namespace",
    shell_complete=completed_by("namespaces"),
    help="The namespace of KIND/NAME, and of manifests that name none; else that of --store, else default.",
)
OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "yaml", "json"]), default="table", help="The form."
)
ALL_NAMESPACES = click.option("-A", "--all-namespaces", is_flag=True, help="Not only one namespace.")
WATCH = click.option("-w", "--watch", is_flag=True, help="Go on, and print every change.")
SHOW_SECRETS = click.option("--show-secrets", is_flag=True, help="Print secret values, too.")
PLUGINS = click.option(
    "--plugins", type=click.Path(), metavar="DIR", help="Where plugins are.  [default: ~/.terraform.d/plugins]"
)
COOKIE_PLACES = click.Choice(["status", "annotation"])
COOKIE_LOCATION = click.option(
    "--cookie-location",
    type=COOKIE_PLACES,
    default="status",
    envvar="SETPOINT_COOKIE_LOCATION",
    metavar="PLACE",
    help=COOKIE_HELP,
)
TENANCY = click.option("--tenancy", type=click.Choice(["strict", "single"]), help=TENANCY_HELP)
TABLE_OR_JSON = click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The form.")
TEXT_OR_JSON = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="The form.")

TEXT_YAML_OR_JSON = click.option(
    "-o", "--output", type=click.Choice(["text", "yaml", "json"]), default="text", help="The form."
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only what failed or is not done, and the summary.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask, on a terminal either.")
SET_NAME = click.option(
    "--set",
    "set_name",
    metavar="NAME",
    shell_complete=completed_by("sets"),
    help="The manifests are all of this set, which is recorded.",
)
LABELS = click.option(
    "-l",
    "--selector",
    "labels",
    metavar="KEY=VALUE,...",
    help="With --prune: those with these labels. Of a plan without manifests: only those with these labels.",
)
PRUNE = click.option("--prune", is_flag=True, help="Delete what left the set, or what has the labels otherwise.")
ADOPT = click.option("--adopt", is_flag=True, help="Take over what another set declares.")
ALLOW_EMPTY = click.option("--allow-empty", is_flag=True, help="Prune everything where there is no manifest left.")
SELECTOR = click.option("-l", "--selector", "selector", metavar="LABELS", help="Only those with these labels.")
FIELD_SELECTOR = click.option(
    "--field-selector",
    "--filter",
    "field_selector",
    metavar="FIELDS",
    shell_complete=completed_by("fields"),
    help="Only those with these fields: state=failed,kind=SQLInstance,spec.region=europe-*.",
)
SORT_BY = click.option(
    "--sort-by",
    metavar="PATH",
    shell_complete=completed_by("sort_paths"),
    help="In the order of a field, such as .metadata.name.",
)
GET_OUTPUT = click.option(
    "-o",
    "--output",
    type=OutputForm(("table", "wide", "yaml", "json", "name"), ("jsonpath", "custom-columns")),
    default="table",
    help="The form: table, wide, yaml, json, name, jsonpath=TEMPLATE, custom-columns=HEADER:PATH,...",
)
IMPORT_FORM = click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="The form.")
SCOPE = (SET_NAME, LABELS, PRUNE, ADOPT, ALLOW_EMPTY)
IGNORE_NOT_FOUND = click.option("--ignore-not-found", is_flag=True, help="What is not declared is no error.")


def options_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order given."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


# Commands that use no store take its option all the same, as `setpoint` does in front of them.
_WITHOUT_STORE: Final = (
    *("completion", "crds", "demo", "install", "kinds", "local-cloud", "schema", "tenant", "validate"),
    *("verify-upgrade", "version"),
)


def command_named(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declares the command `name`, with its help text. The options of `setpoint` may follow it as well."""

    def declared(function: Callable[..., None]) -> click.Command:
        command = click.command(name, help=COMMAND_HELP[name])(function)
        own = {one.name for one in command.params}
        command.params += [one for one in _group_options(name) if one.name not in own]
        return command

    return declared


def _group_options(name: str) -> Sequence[click.Option]:
    def set_store(context: click.Context, _: click.Parameter, store: str | None) -> None:
        if store is not None and context.obj is not None:
            context.obj = (store, context.obj[1])

    def set_cookies(context: click.Context, _: click.Parameter, cookies: str | None) -> None:
        if cookies is not None and context.obj is not None:
            context.obj = (context.obj[0], cookies)

    is_hidden = name in _WITHOUT_STORE
    return (
        click.Option(
            ["--store"], metavar="URL", help=STORE_HELP, expose_value=False, callback=set_store, hidden=is_hidden
        ),
        click.Option(
            ["--cookie-location"],
            type=COOKIE_PLACES,
            metavar="PLACE",
            help=COOKIE_HELP,
            expose_value=False,
            callback=set_cookies,
            hidden=is_hidden,
        ),
    )


def begin_work() -> None:
    """To be called once the modules of a command are imported: from here on garbage is collected, but not in them."""
    gc.freeze()
    gc.enable()


def exit_with(context: click.Context, command: Callable[[dict[str, Any]], int], options: dict[str, object]) -> None:
    """Ends the process with the exit code of `command`."""
    store, cookies = context.obj
    begin_work()
    context.exit(command({**options, "store": store, "cookies": cookies}))


def run_request(
    context: click.Context, command: Callable[["CommandRequest"], Awaitable[int]], options: dict[str, object]
) -> None:
    """Ends the process with the exit code of a command that takes a request."""
    from setpoint.cli.request import run_command

    exit_with(context, lambda all_options: run_command(command, all_options), options)


def declare(name: str, module: str, *options: Callable[[Callable[..., None]], Callable[..., None]]) -> click.Command:
    """Declares the command `name` with these options: the function of that name in a module of `commands`."""

    @command_named(name)
    @options_of(*options)
    @click.pass_context
    def command(context: click.Context, /, **chosen: object) -> None:
        run_request(context, getattr(import_module(f"setpoint.cli.commands.{module}"), name), chosen)

    return command
