"""Exports in files and pipes: written as YAML or JSON, and read from either."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from setpoint.cli.manifests import texts
from setpoint.core.canonical import canonical
from setpoint.core.paths import Path as FieldPath
from setpoint.core.yaml_documents import Document, read_documents, write_document
from setpoint.engine.exports import Export, documents_of, read_export
from setpoint.errors import ManifestInvalid

_SEPARATOR: Final = "---\n"
_LARGEST: Final = 2**30
_SOMETHING: Final = re.compile(r"\S")


def lines_of(export: Export, form: str) -> Iterator[str]:
    """The text of an export: documents of YAML, or of JSON with one on each line."""
    for number, document in enumerate(documents_of(export)):
        if form == "json":
            yield f"{canonical(document).decode()}\n"
        else:
            yield f"{_SEPARATOR if number else ''}{write_document(document)}"


def load_export(paths: Sequence[str]) -> Export:
    """The exports in `paths`, as one; ManifestInvalid names file, line and what to do."""
    documents = [
        one for path in paths for source, text in texts(path, _LARGEST) for one in _whole_documents(text, source)
    ]
    if not documents:
        raise ManifestInvalid(f"no export in {', '.join(paths)}: `setpoint export` makes one")
    return read_export(documents)


def _whole_documents(text: str, source: str) -> Sequence[Document]:
    is_json = text.lstrip().startswith("{")
    return list(_json_documents(text, source)) if is_json else read_documents(text, source)


def _json_documents(text: str, source: str) -> Iterator[Document]:
    """One document after the other, with whatever space between them."""
    decoder, end, line = json.JSONDecoder(), 0, 1
    while found := _SOMETHING.search(text, end):
        line += text.count("\n", end, found.start())
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            wrong = error.lineno if isinstance(error, json.JSONDecodeError) else line
            raise ManifestInvalid(f"{source}:{wrong}: this is not JSON, or breaks off here: export again") from error
        yield Document(value, source, {FieldPath(): line})
        line += text.count("\n", found.start(), end)
