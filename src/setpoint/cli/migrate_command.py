"""`setpoint migrate`: what taking over from Config Connector would write, and the hand-over of a namespace."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import orjson
from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.app import Access, open_world
from setpoint.cli.alike import told_by_a_few
from setpoint.cli.columns import one_line
from setpoint.cli.looked_after import is_looked_after
from setpoint.cli.requests import Request, carry_out
from setpoint.cli.show import plan_rows
from setpoint.cli.states import Exit
from setpoint.cli.survey_progress import SurveyProgress
from setpoint.clients.config_connector import Controller
from setpoint.core.values import Json
from setpoint.engine.adoption import Adoption
from setpoint.engine.previews import Finding
from setpoint.engine.report import listed
from setpoint.engine.resource import ResourceRef
from setpoint.errors import UserError
from setpoint.migrating import (
    Adoptions,
    Source,
    begin_ours,
    finish,
    is_same_place,
    previewed,
    require_room,
    stop_theirs,
)


def migrate(options: dict[str, Any]) -> int:
    """The exit code of `setpoint migrate`."""
    return carry_out(lambda request: _migrate(request, options), options)


async def _migrate(request: Request, options: dict[str, Any]) -> Exit:
    source = Source(options["context"], options["namespace"])
    for word in ("hand_over", "finish"):
        if options[word] and source.namespace is None:
            raise UserError(f"--{word.replace('_', '-')} is for one namespace at a time: name it with -n")
    if options["hand_over"] and options["finish"]:
        raise UserError("--finish comes after --hand-over, once Config Connector is uninstalled: leave one of them out")
    if options["finish"]:
        await _finish(request, source)
        return Exit.DONE
    with SurveyProgress() as progress:
        found = await previewed(source, request.settings, progress.hear)
    code = _code(found)
    if options["hand_over"]:
        _require_quiet(found, code, accepts=options["accept_changes"])
        await _hand_over(request, source)
        return Exit.DONE
    if request.output == "json":
        _print({"resources": [one.to_data() for one in found.each], "blocked": list(found.blocked)}, request)
    else:
        request.console.print(_view(found), soft_wrap=True)
    return code


def _code(found: Adoptions) -> Exit:
    is_wrong = bool(found.blocked) or any(_is_wrong(one) for one in found.each)
    return Exit.FAILED if is_wrong else Exit.CHANGES if found.loud else Exit.DONE


def _is_wrong(one: Adoption) -> bool:
    return one.found.finding in (Finding.FAILED, Finding.MASKED, Finding.UNSETTLED)


# --- Hand-over --------------------------------------------------------------------------------------------------------


def _require_quiet(found: Adoptions, code: Exit, *, accepts: bool) -> None:
    if code is Exit.FAILED:
        refs = listed([str(one.found.ref) for one in found.each if _is_wrong(one)]) or "a kind"
        raise UserError(
            f"nothing was handed over: {refs} cannot be looked at; `setpoint migrate` without --hand-over says why"
        )
    if found.loud and not accepts:
        refs = listed([str(one.found.ref) for one in found.loud])
        raise UserError(
            f"nothing was handed over: {refs} would be written to. Annotate them as `setpoint migrate` says without "
            "--hand-over, or hand over with --accept-changes"
        )


async def _hand_over(request: Request, source: Source) -> None:
    async with open_world(request.settings, Access.READ) as ours:
        if await is_looked_after(request, ours):
            raise UserError(
                "somebody looks after our store already, and would begin before Config Connector has stopped: end that "
                "first, then hand over"
            )
    await require_room(source, request.settings)
    before = await stop_theirs(source, request.settings)
    refs = await begin_ours(source, request.settings)
    if request.output == "json":
        _print({"controller": before.value, "handedOver": _names(refs)}, request)
        return
    for line in _told(source, before, refs, stays=is_same_place(source, request.settings)):
        request.console.print(Text(line), soft_wrap=True)


async def _finish(request: Request, source: Source) -> None:
    refs, stays = await finish(source, request.settings), is_same_place(source, request.settings)
    if request.output == "json":
        _print({"freed" if stays else "removed": _names(refs)}, request)
        return
    for ref in refs:
        told = "is free of Config Connector" if stays else "removed there; its object stays, and is looked after here"
        request.console.print(Text(f"{ref} {told}"), soft_wrap=True)
    if not refs:
        request.console.print(Text(f"Nothing of Config Connector is left in {source.namespace}"), soft_wrap=True)


def _names(refs: Sequence[ResourceRef]) -> list[Json]:
    return [{"kind": ref.kind, "namespace": ref.namespace, "name": ref.name} for ref in refs]


def _told(source: Source, before: Controller, refs: Sequence[ResourceRef], *, stays: bool) -> Iterator[str]:
    yield from (f"{ref} handed over" for ref in refs)
    match before:
        case Controller.NOBODY:
            yield f"Nobody of Config Connector looked after {source.namespace}"
        case _:
            yield f"Config Connector is paused in {source.namespace}: it touches nothing there any more"
    if not stays:
        yield "There, they are abandoned: whoever deletes them leaves the objects alone"
    yield "`setpoint plan --all` shows what is left to do; from now on `setpoint run` looks after them"


# --- For people -------------------------------------------------------------------------------------------------------


def _view(found: Adoptions) -> RenderableType:
    parts = list(told_by_a_few(found.loud, _lines, _alike))
    parts += [Text(f"blocked: {one_line(one)}", style="red") for one in found.blocked]
    quiet, loud = len(found.each) - len(found.loud), len(found.loud)
    told = (
        f"{quiet} of {quiet + loud} can be taken over without a write"
        if found.each
        else "There is nothing to take over"
    )
    return Group(*parts, Text(told, style="yellow" if loud else "green"))


def _alike(one: Adoption) -> Hashable:
    found = one.found
    return found.ref.kind, found.finding, found.fields, found.trouble, tuple(one.keeps.items())


def _lines(one: Adoption) -> Iterator[RenderableType]:
    plan, found = one.found.told, one.found
    why = one_line(found.trouble) or ("" if plan is None else plan.because or plan.decision.value)
    yield Text(f"{found.ref} {found.finding.value}: {why}", style="red" if _is_wrong(one) else "yellow")
    if plan is not None and (plan.writes or plan.withheld):
        yield plan_rows(plan)
    if one.keeps:
        kept = " ".join(f"{name}={text}" for name, text in one.keeps.items())
        yield Text(f"   kept as it is with: {one_line(kept)}", style="dim")
    elif found.finding is Finding.WRITES:
        yield Text("   no annotation keeps this as it is", style="dim")


def _print(data: Json, request: Request) -> None:
    request.console.out(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
