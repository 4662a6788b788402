"""`setpoint kinds`: the kinds that are installed, ours and those of plug-ins, as a table, as data and as pages."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.app import all_plugins
from setpoint.app.kind_reference import (
    FieldReference,
    KnownKind,
    KnownKinds,
    annotations_of,
    fields_of,
    known_kinds,
    outputs_of,
    page_of,
)
from setpoint.app.kinds import find_kind, known_names
from setpoint.cli.request import CommandRequest, print_document
from setpoint.cli.views.outcome import ExitCode
from setpoint.cli.views.table import TextTable, one_line
from setpoint.core.values.json_types import Json
from setpoint.errors import PluginBroken

_COLUMNS = ("KIND", "API VERSION", "SOURCE", "COOKIE")
_WIDE_COLUMNS = ("REVISION", "DESCRIPTION")


async def kinds(request: CommandRequest) -> ExitCode:
    """Lists every kind; or describes those that are named, of which no other is loaded."""
    plugins = all_plugins()
    wanted = [find_kind(word, known_names(plugins)) for word in request.targets]
    known = known_kinds(plugins, wanted or None)
    chosen = [known.kinds[name] for name in wanted] or list(known.kinds.values())
    if wanted and (broken := next((one for one in chosen if one.code is None), None)) is not None:
        raise PluginBroken(broken.error)
    match request.output:
        case "json" | "yaml":
            _print_data(chosen, known, request)
        case "name":
            request.console.out("\n".join(f"{one.name[1]}.{one.version}.{one.name[0]}" for one in chosen))
        case "markdown":
            request.console.out("\n".join(page_of(one) for one in chosen if one.code is not None), end="")
        case _ if wanted:
            request.console.print(Group(*(line for one in chosen for line in _description(one))), soft_wrap=True)
        case _:
            request.console.print(_listing(chosen, known, wide=request.output == "wide"), soft_wrap=True)
    is_broken = any(one.code is None for one in chosen) or (not wanted and bool(known.refused))
    return ExitCode.FAILED if is_broken else ExitCode.DONE


# --- As a table -------------------------------------------------------------------------------------------------------


def _listing(chosen: Sequence[KnownKind], known: KnownKinds, *, wide: bool) -> RenderableType:
    table = TextTable(*_COLUMNS, *(_WIDE_COLUMNS if wide else ()))
    lines = [table.lines(_row(one, wide=wide) for one in chosen)]
    lines += [Text(f"{one.name[1]}: {one_line(one.error)}", style="red") for one in chosen if one.code is None]
    lines += [Text(_refusal(*one), style="red") for one in known.refused]
    return Group(*lines)


def _row(one: KnownKind, *, wide: bool) -> tuple[Sequence[str], str]:
    cookie = "-" if one.code is None else "no" if one.role == "stateless" else "yes"
    cells = (one.name[1], one.api_version, one.source, "broken" if one.code is None else cookie)
    if not wide:
        return cells, "red" if one.code is None else ""
    if one.code is None:
        return (*cells, "-", "-"), "red"
    return (*cells, str(one.code.revision), one.code.definition.description), ""


def _refusal(distribution: object, entry: str, why: str) -> str:
    return f"the entry point {one_line(entry)} of {distribution} is not used: {one_line(why)}"


# --- One kind ---------------------------------------------------------------------------------------------------------


def _description(one: KnownKind) -> Iterator[Text]:
    code = one.code
    assert code is not None
    facts = TextTable()
    yield Text(f"{one.name[1]} ({one.api_version})", style="bold")
    yield Text(code.definition.description)
    yield facts.lines([((f"{name}:", text), "") for name, text in _facts(one)])
    yield Text("\nFIELDS", style="bold")
    yield from _fields(fields_of(code.tree_type))
    outputs = outputs_of(code.definition.outputs)
    if outputs:
        yield Text("\nSTATUS", style="bold")
        yield from _fields(outputs)
    yield Text("\nANNOTATIONS", style="bold")
    yield TextTable().lines([((key, meaning), "") for key, meaning in annotations_of(code)])


def _facts(one: KnownKind) -> Iterator[tuple[str, str]]:
    assert one.code is not None
    yield "Source", one.source
    yield "Reconciliation", f"{one.role}, revision {one.code.revision}"


def _fields(fields: Sequence[FieldReference]) -> Iterator[Text]:
    table = TextTable("FIELD", "TYPE", "DEFAULT", "NOTES", "WHAT IT IS")
    yield table.lines(
        (
            (
                one.path,
                f"{one.type} to {one.refers_to}" if one.refers_to else one.type,
                one.default_text or "-",
                ", ".join(one.notes) or "-",
                one.description,
            ),
            "",
        )
        for one in fields
    )


# --- As data ----------------------------------------------------------------------------------------------------------


def _print_data(chosen: Sequence[KnownKind], known: KnownKinds, request: CommandRequest) -> None:
    if request.targets:
        documents: list[Json] = [_data(one) for one in chosen]
        print_document(documents[0] if len(documents) == 1 else documents, request)
        return
    refused: list[Json] = [
        {"distribution": one.name, "version": one.version, "entryPoint": entry, "error": why}
        for one, entry, why in known.refused
    ]
    print_document({"kinds": [one.to_data() for one in chosen], "refused": refused}, request)


def _data(one: KnownKind) -> Json:
    assert one.code is not None
    return {
        **one.to_data(),
        "fields": [field.to_data() for field in fields_of(one.code.tree_type)],
        "outputs": [field.to_data() for field in outputs_of(one.code.definition.outputs)],
        "annotations": [{"name": key, "meaning": meaning} for key, meaning in annotations_of(one.code)],
    }
