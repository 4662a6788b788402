"""Commands that declare, reconcile and show resources."""

from typing import Final

import click

from setpoint.cli.definitions.options import (
    ALL_NAMESPACES,
    DRY_RUN,
    FIELD_SELECTOR,
    FILES,
    GET_OUTPUT,
    IGNORE_NOT_FOUND,
    NAMESPACE,
    OUTPUT,
    PATHS,
    QUIET,
    SCOPE,
    SELECTED,
    SELECTOR,
    SHOW_SECRETS,
    SORT_BY,
    TENANCY,
    TEXT_YAML_OR_JSON,
    TIMEOUT,
    WAIT,
    WATCH,
    YES,
    command_named,
    completed_by,
    declare,
    exit_with,
    options_of,
    run_request,
)

apply = declare("apply", "apply", FILES, PATHS, *SCOPE, NAMESPACE, WAIT, TIMEOUT, TEXT_YAML_OR_JSON, QUIET)
reconcile = declare(
    "reconcile",
    "apply",
    *(FILES, SELECTED, SELECTOR, FIELD_SELECTOR, NAMESPACE, WAIT, TIMEOUT, TEXT_YAML_OR_JSON, QUIET),
)
delete = declare(
    "delete",
    "delete",
    *(
        FILES,
        SELECTED,
        SELECTOR,
        FIELD_SELECTOR,
        NAMESPACE,
        DRY_RUN,
        YES,
        IGNORE_NOT_FOUND,
        WAIT,
        TIMEOUT,
        TEXT_YAML_OR_JSON,
        QUIET,
    ),
)


@command_named("plan")
@options_of(FILES, SELECTED, *SCOPE, FIELD_SELECTOR, NAMESPACE)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "yaml", "json", "markdown"]),
    default="table",
    help="The form; markdown is a comment for a pull request.",
)
@QUIET
@click.option("--all", "everything", is_flag=True, help="Everything in the store, with and without cookies.")
@click.option("--world", metavar="FILE", help="The same of a world that setpoint record made; no service is called.")
@click.option(
    "--as",
    "variants",
    multiple=True,
    metavar="KIND=WAY",
    help="With these, handle KIND stateless, stateful, or as an earlier REVISION did.",
)
@TENANCY
@click.pass_context
def plan(context: click.Context, /, **options: object) -> None:
    if options["everything"] or options["world"] or options["variants"]:
        if options["output"] == "markdown":
            raise click.UsageError("-o markdown is for the plan of manifests, without --all, --world and --as")
        from setpoint.cli.commands.plan_all import plan_all

        exit_with(context, plan_all, options)
    else:
        from setpoint.cli.commands.apply import plan

        run_request(context, plan, options)


get = declare(
    "get",
    "inspect",
    *(SELECTED, NAMESPACE, ALL_NAMESPACES, SELECTOR, FIELD_SELECTOR, SORT_BY, GET_OUTPUT, WATCH, SHOW_SECRETS),
)
_CHOSEN: Final = (SELECTED, NAMESPACE, SELECTOR, FIELD_SELECTOR, OUTPUT, WATCH)
describe = declare("describe", "inspect", *_CHOSEN, SHOW_SECRETS)
explain = declare("explain", "inspect", *_CHOSEN)
events = declare("events", "inspect", *_CHOSEN, ALL_NAMESPACES)


@command_named("history")
@click.argument("target", metavar="KIND/NAME", shell_complete=completed_by("targets"))
@options_of(NAMESPACE, OUTPUT, WATCH)
@click.option("--since", metavar="TIME", help="What is newer: than 2h ago, or than 2026-01-31T12:00Z.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=50,
    metavar="NUMBER",
    show_default=True,
    help="The newest so many entries.",
)
@click.pass_context
def history(context: click.Context, /, *, target: str, **options: object) -> None:
    from setpoint.cli.commands.history import show_history

    exit_with(context, show_history, {**options, "targets": (target,)})


@command_named("graph")
@options_of(FILES, SELECTED, NAMESPACE)
@ALL_NAMESPACES
@click.option("--depth", type=click.IntRange(min=0), metavar="N", help="With KIND/NAME: what is N steps around it.")
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    metavar="N",
    help="Draw more resources than these by kind and namespace; 0 draws each. JSON has each.",
)
@click.option("-o", "--output", type=click.Choice(["text", "dot", "mermaid", "json"]), default="text", help="The form.")
@click.pass_context
def graph(context: click.Context, /, **options: object) -> None:
    from setpoint.cli.commands.graph import draw_graph

    exit_with(context, draw_graph, options)


COMMANDS: Final = (apply, plan, reconcile, delete, get, describe, explain, events, history, graph)
