"""`setpoint migrate`: what taking over from Config Connector would write, and the hand-over of a namespace."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.request import CommandRequest, open_session, print_json, run_command
from setpoint.cli.views.plan import plan_rows
from setpoint.cli.views.progress import PreviewProgress
from setpoint.cli.views.table import fold_similar, one_line
from setpoint.clients.kubernetes.config_connector import ConfigConnectorMode
from setpoint.core.values.json_types import Json
from setpoint.engine.conditions import join_names
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding
from setpoint.errors import UserError
from setpoint.library.executors import has_controller
from setpoint.library.manifests.checks import warn_of
from setpoint.library.outcome import ExitCode
from setpoint.migration import (
    AdoptionReport,
    MigrationSource,
    ResourceAdoption,
    finish_migration,
    is_same_store,
    preview_migration,
    require_no_conflicts,
    stop_config_connector,
    take_over,
)


def migrate(options: dict[str, Any]) -> int:
    """The exit code of `setpoint migrate`."""
    return run_command(lambda request: _migrate(request, options), options)


async def _migrate(request: CommandRequest, options: dict[str, Any]) -> ExitCode:
    source = MigrationSource(options["context"], options["namespace"])
    for word in ("hand_over", "finish"):
        if options[word] and source.namespace is None:
            raise UserError(f"--{word.replace('_', '-')} is for one namespace at a time: name it with -n")
    if options["hand_over"] and options["finish"]:
        raise UserError("--finish comes after --hand-over, once Config Connector is uninstalled: leave one of them out")
    if options["finish"]:
        await _finish(request, source)
        return ExitCode.DONE
    with PreviewProgress() as progress:
        found = await preview_migration(source, request.settings, progress.advance)
    warn_of(((one.found.ref, text) for one in found.each for text in one.warnings), request.settings.warn)
    code = _exit_code(found)
    if options["hand_over"]:
        _require_no_writes(found, code, accepts=options["accept_changes"])
        await _hand_over(request, source)
        return ExitCode.DONE
    if request.output == "json":
        print_json({"resources": [one.to_data() for one in found.each], "blocked": list(found.blocked)}, request)
    else:
        request.console.print(_view(found), soft_wrap=True)
    return code


def _exit_code(found: AdoptionReport) -> ExitCode:
    is_wrong = bool(found.blocked) or any(_is_failed(one) for one in found.each)
    return ExitCode.FAILED if is_wrong else ExitCode.CHANGES if found.loud else ExitCode.DONE


def _is_failed(one: ResourceAdoption) -> bool:
    return one.found.finding in (PreviewFinding.FAILED, PreviewFinding.MASKED, PreviewFinding.UNSETTLED)


# --- Hand-over --------------------------------------------------------------------------------------------------------


def _require_no_writes(found: AdoptionReport, code: ExitCode, *, accepts: bool) -> None:
    if code is ExitCode.FAILED:
        refs = join_names([str(one.found.ref) for one in found.each if _is_failed(one)]) or "a kind"
        raise UserError(
            f"nothing was handed over: {refs} cannot be previewed; `setpoint migrate` without --hand-over says why"
        )
    if found.loud and not accepts:
        refs = join_names([str(one.found.ref) for one in found.loud])
        raise UserError(
            f"nothing was handed over: {refs} would be written to. Annotate them as `setpoint migrate` says without "
            "--hand-over, or hand over with --accept-changes"
        )


async def _hand_over(request: CommandRequest, source: MigrationSource) -> None:
    async with open_session(request) as session, session.reading() as ours:
        if await has_controller(request.settings, ours):
            raise UserError(
                "a controller is running for our store already, and would begin before Config Connector has stopped: "
                "stop it first, then hand over"
            )
    await require_no_conflicts(source, request.settings)
    before = await stop_config_connector(source, request.settings)
    refs = await take_over(source, request.settings)
    if request.output == "json":
        print_json({"controller": before.value, "handedOver": _names(refs)}, request)
        return
    for line in _hand_over_lines(source, before, refs, stays=is_same_store(source, request.settings)):
        request.console.print(Text(line), soft_wrap=True)


async def _finish(request: CommandRequest, source: MigrationSource) -> None:
    refs, stays = await finish_migration(source, request.settings), is_same_store(source, request.settings)
    if request.output == "json":
        print_json({"freed" if stays else "removed": _names(refs)}, request)
        return
    for ref in refs:
        text = "is free of Config Connector" if stays else "removed there; its object stays, and is managed here"
        request.console.print(Text(f"{ref} {text}"), soft_wrap=True)
    if not refs:
        request.console.print(Text(f"Nothing of Config Connector is left in {source.namespace}"), soft_wrap=True)


def _names(refs: Sequence[ResourceRef]) -> list[Json]:
    return [{"kind": ref.kind, "namespace": ref.namespace, "name": ref.name} for ref in refs]


def _hand_over_lines(
    source: MigrationSource, before: ConfigConnectorMode, refs: Sequence[ResourceRef], *, stays: bool
) -> Iterator[str]:
    yield from (f"{ref} handed over" for ref in refs)
    match before:
        case ConfigConnectorMode.ABSENT:
            yield f"Config Connector was not managing {source.namespace}"
        case _:
            yield f"Config Connector is paused in {source.namespace}: it touches nothing there any more"
    if not stays:
        yield "There, they are abandoned: deleting them leaves the objects alone"
    yield "`setpoint plan --all` shows what is left to do; from now on `setpoint run` reconciles them"


# --- As text -------------------------------------------------------------------------------------------------------


def _view(found: AdoptionReport) -> RenderableType:
    parts = list(fold_similar(found.loud, _lines, _similarity_key))
    parts += [Text(f"blocked: {one_line(one)}", style="red") for one in found.blocked]
    quiet, loud = len(found.each) - len(found.loud), len(found.loud)
    text = (
        f"{quiet} of {quiet + loud} can be taken over without a write"
        if found.each
        else "There is nothing to take over"
    )
    return Group(*parts, Text(text, style="yellow" if loud else "green"))


def _similarity_key(one: ResourceAdoption) -> Hashable:
    found = one.found
    return found.ref.kind, found.finding, found.fields, found.trouble, tuple(one.keeps.items())


def _lines(one: ResourceAdoption) -> Iterator[RenderableType]:
    plan, found = one.found.shown, one.found
    why = one_line(found.trouble) or ("" if plan is None else plan.because or plan.decision.value)
    yield Text(f"{found.ref} {found.finding.value}: {why}", style="red" if _is_failed(one) else "yellow")
    if plan is not None and (plan.writes or plan.withheld):
        yield plan_rows(plan)
    if one.keeps:
        kept = " ".join(f"{name}={text}" for name, text in one.keeps.items())
        yield Text(f"   kept as it is with: {one_line(kept)}", style="dim")
    elif found.finding is PreviewFinding.WRITES:
        yield Text("   no annotation keeps this as it is", style="dim")
