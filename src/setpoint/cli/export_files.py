"""Exports in files and pipes: written so that only their owner reads them, read from YAML or JSON."""

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from setpoint.cli.manifests import texts
from setpoint.core.canonical import canonical
from setpoint.core.paths import Path as FieldPath
from setpoint.core.yaml_documents import Document, read_documents, write_document
from setpoint.engine.exports import Export, documents_of, read_export
from setpoint.errors import ManifestInvalid, UserError

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


def write_privately(path: Path, text: Iterable[str]) -> None:
    """The file with this text, there as a whole or not at all, which nobody but its owner can read."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.writelines(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise UserError(f"--to {path}: {error.strerror}: name a file in a folder that you can write to") from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


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
