"""Resources as the user wants them: by name, by a JSONPath template, in columns of one's own."""

from collections.abc import Sequence

from setpoint.cli.request import CommandRequest
from setpoint.cli.views.table import TextTable
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import Resource
from setpoint.library.selecting.custom_columns import CustomColumns
from setpoint.library.selecting.json_path import JsonPathTemplate


def print_chosen_fields(resources: Sequence[Resource], request: CommandRequest, *, is_one: bool) -> None:
    """Prints the resources as `-o` says. A template is filled in for the one that was named, else for the list."""
    form, _, rest = request.output.partition("=")
    documents: list[Json] = [dict(one.document) for one in resources]
    match form:
        case "name":
            for one in resources:
                request.console.out(f"{one.ref.kind}/{one.ref.name}")
        case "custom-columns":
            columns = CustomColumns.parse(rest)
            table = TextTable(*columns.headers)
            request.console.print(table.lines((columns.row(one), "") for one in documents), soft_wrap=True)
        case _:
            template = JsonPathTemplate.parse(rest)
            trees: list[Json] = documents if is_one else [{"apiVersion": "v1", "kind": "List", "items": documents}]
            for tree in trees:
                text = template.render(tree)
                # Values are printable; what stands between them is as the user wrote it, tabs too.
                request.console.file.write(text if text.endswith("\n") else f"{text}\n")
