"""`setpoint validate`: what is wrong with manifests, offline; as text, JSON, SARIF and annotations of GitHub."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

import orjson
from rich.text import Text

from setpoint import __version__
from setpoint.cli.request import CommandRequest, open_session, selection_of
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.messages import printable
from setpoint.errors import ManifestInvalid
from setpoint.library.manifests.validation import ManifestProblem, ManifestValidation, ProblemLevel, unreadable
from setpoint.library.outcome import ExitCode

_STYLES: Final = {ProblemLevel.ERROR: "red", ProblemLevel.WARNING: "yellow"}
_RULE: Final = "manifest"


async def validate(request: CommandRequest) -> ExitCode:
    """Prints every mistake; FAILED when there is an error. Neither a store, nor a service, nor a cluster is opened."""
    if not request.files:
        raise ManifestInvalid("nothing to validate: name a file or folder, or - for standard input")
    found = await _validated(request)
    if request.output in FORMATS:
        request.console.out(FORMATS[request.output](found), end="")
    else:
        _print(found, request)
    return ExitCode.DONE if found.is_valid else ExitCode.FAILED


async def _validated(request: CommandRequest) -> ManifestValidation:
    offline = replace(request, settings=replace(request.settings, store="memory:"))
    try:
        selection = selection_of(offline)
    except ManifestInvalid as error:
        return unreadable(error)
    async with open_session(offline) as session:
        return await session.validate(selection)


def _print(found: ManifestValidation, request: CommandRequest) -> None:
    console = request.console
    for one in found.problems:
        console.print(Text(f"{one.level}: {one}", style=_STYLES[one.level]), soft_wrap=True)
    if not request.quiet or found.problems:
        console.print(Text(_summary(found), style="" if found.is_valid else "bold red"), soft_wrap=True)


def _summary(found: ManifestValidation) -> str:
    errors, warnings = len(found.errors), len(found.problems) - len(found.errors)
    parts = [_counted(found.manifests, "manifest"), _counted(errors, "error")]
    parts += [_counted(warnings, "warning")] if warnings else []
    return ", ".join(parts) + (": there may be more errors behind these" if found.is_cut else "")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


# --- For programs -----------------------------------------------------------------------------------------------------


def _as_json(found: ManifestValidation) -> str:
    problems: list[Json] = [one.to_data() for one in found.problems]
    return _json({"valid": found.is_valid, "manifests": found.manifests, "problems": problems})


def _as_sarif(found: ManifestValidation) -> str:
    """SARIF 2.1.0, as code scanning reads it."""
    driver: JsonObject = {
        "name": "setpoint",
        "version": __version__,
        "rules": [{"id": _RULE, "shortDescription": {"text": "A manifest that cannot be applied as it is."}}],
    }
    return _json(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": list(map(_sarif_result, found.problems))}],
        }
    )


def _sarif_result(one: ManifestProblem) -> Json:
    result: dict[str, Json] = {"ruleId": _RULE, "level": one.level.value, "message": {"text": one.message}}
    if one.file is not None:
        place: dict[str, Json] = {"artifactLocation": {"uri": quote(PurePath(one.file).as_posix())}}
        if one.line is not None:
            place["region"] = {"startLine": one.line}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _as_github(found: ManifestValidation) -> str:
    """Commands of a workflow: each becomes an annotation of the line that it is about."""
    return "".join(f"{_github_command(one)}\n" for one in found.problems) + f"{_summary(found)}\n"


def _github_command(one: ManifestProblem) -> str:
    place = {"file": one.file, "line": one.line, "title": "setpoint validate"}
    members = ",".join(f"{name}={_escaped(str(value), ',:')}" for name, value in place.items() if value is not None)
    return f"::{one.level} {members}::{_escaped(printable(one.message))}"


def _escaped(text: str, more: str = "") -> str:
    """The text with the characters escaped that would end it, or begin another command."""
    return "".join(f"%{ord(one):02X}" if one in f"%\r\n{more}" else one for one in text)


def _json(document: Json) -> str:
    return f"{orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()}\n"


FORMATS: Final[Mapping[str, Callable[[ManifestValidation], str]]] = {
    "json": _as_json,
    "sarif": _as_sarif,
    "github": _as_github,
}
