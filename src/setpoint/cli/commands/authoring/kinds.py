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
from setpoint.cli.views.table import TextTable, one_line
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import nearest
from setpoint.errors import PluginBroken, UserError
from setpoint.library.outcome import ExitCode

_COLUMNS = ("KIND", "API VERSION", "SOURCE", "COOKIE")
_WIDE_COLUMNS = ("REVISION", "DESCRIPTION")
# The parts of a manifest that a path begins with.
_PART_MEANINGS = {
    "spec": "What the author declares.",
    "metadata": "Names, labels and annotations.",
    "status": "What the service reports, and what the engine keeps.",
}
_PARTS = tuple(_PART_MEANINGS)


async def kinds(request: CommandRequest) -> ExitCode:
    """Lists every kind; or describes those that are named, of which no other is loaded."""
    plugins = all_plugins()
    words = [_split(word) for word in request.targets]
    wanted = [find_kind(word, known_names(plugins)) for word, _ in words]
    known = known_kinds(plugins, wanted or None)
    chosen = [known.kinds[name] for name in wanted] or list(known.kinds.values())
    if wanted and (broken := next((one for one in chosen if one.code is None), None)) is not None:
        raise PluginBroken(broken.error)
    match request.output:
        case "json" | "yaml":
            _print_data(chosen, [path for _, path in words], known, request)
        case "name":
            request.console.out("\n".join(f"{one.name[1]}.{one.version}.{one.name[0]}" for one in chosen))
        case "markdown":
            request.console.out("\n".join(page_of(one) for one in chosen if one.code is not None), end="")
        case _ if wanted:
            lines = [line for one, (_, path) in zip(chosen, words, strict=True) for line in _described(one, path)]
            request.console.print(Group(*lines), soft_wrap=True)
        case _:
            request.console.print(_listing(chosen, known, wide=request.output == "wide"), soft_wrap=True)
    is_broken = any(one.code is None for one in chosen) or (not wanted and bool(known.refused))
    return ExitCode.FAILED if is_broken else ExitCode.DONE


def _split(word: str) -> tuple[str, str]:
    """The kind, and the path of a field in it: `SQLInstance.spec.settings`; the path is empty for the whole kind."""
    kind, _, path = word.partition(".")
    return (kind, path) if path.partition(".")[0] in _PARTS else (word, "")


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


def _described(one: KnownKind, path: str) -> Iterator[Text]:
    return _description(one) if not path else _field_description(one, path)


def _field_description(one: KnownKind, path: str) -> Iterator[Text]:
    """The field itself, and those below it."""
    field, *below = _fields_at(one, path)
    yield Text(f"{one.name[1]}.{field.path} ({one.api_version})", style="bold")
    yield Text(field.description)
    facts = [("Type", f"{field.type} to {field.refers_to}" if field.refers_to else field.type)]
    facts += [("Default", field.default_text)] if field.default_text else []
    facts += [("Notes", ", ".join(field.notes))] if field.notes else []
    yield TextTable().lines([((f"{name}:", text), "") for name, text in facts])
    if below:
        yield Text("\nFIELDS", style="bold")
        yield from _fields(below)


def _fields_at(one: KnownKind, path: str) -> Sequence[FieldReference]:
    """The field at the path, and all below it; UserError names the nearest when there is none."""
    assert one.code is not None
    fields = [*fields_of(one.code.tree_type), *outputs_of(one.code.definition.outputs)]
    parts = [FieldReference(part, meaning, "object") for part, meaning in _PART_MEANINGS.items()]
    found = [field for field in (*parts, *fields) if field.path == path or field.path.startswith(f"{path}.")]
    if not found or found[0].path != path:
        close = nearest(path, [field.path for field in fields])
        hint = f"; nearest: {', '.join(close)}" if close else ""
        raise UserError(f"{one.name[1]} has no field {path}{hint}: `setpoint kinds {one.name[1]}` lists all of them")
    return found


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


def _print_data(chosen: Sequence[KnownKind], paths: Sequence[str], known: KnownKinds, request: CommandRequest) -> None:
    if request.targets:
        documents = [_data(one, path) for one, path in zip(chosen, paths, strict=True)]
        print_document(documents[0] if len(documents) == 1 else documents, request)
        return
    refused: list[Json] = [
        {"distribution": one.name, "version": one.version, "entryPoint": entry, "error": why}
        for one, entry, why in known.refused
    ]
    print_document({"kinds": [one.to_data() for one in chosen], "refused": refused}, request)


def _data(one: KnownKind, path: str) -> Json:
    assert one.code is not None
    if path:
        return {**one.to_data(), "fields": [field.to_data() for field in _fields_at(one, path)]}
    return {
        **one.to_data(),
        "fields": [field.to_data() for field in fields_of(one.code.tree_type)],
        "outputs": [field.to_data() for field in outputs_of(one.code.definition.outputs)],
        "annotations": [{"name": key, "meaning": meaning} for key, meaning in annotations_of(one.code)],
    }
