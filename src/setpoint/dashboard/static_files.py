"""The built files of the page, read once: a request can name nothing else."""

import mimetypes
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from aiohttp import web

from setpoint.core.values.deferred_dataclass import dataclass

_NOT_BUILT: Final = (
    "The files of the page are not part of this installation: `make dashboard` builds them. The API is at /api/v1.\n"
)
# Names that change with their content.
_HASHED_FOLDER: Final = "/assets/"
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page, with the digest of its content."""

    content: bytes
    content_type: str
    etag: str

    @staticmethod
    def of(name: str, content: bytes) -> "StaticFile":
        """A file by its name."""
        suffix = f".{name.rpartition('.')[2]}"
        guessed = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        return StaticFile(content, guessed, f'"{sha256(content).hexdigest()[:32]}"')


def read_static_files() -> Mapping[str, StaticFile]:
    """Every file of the page by its path; the start page is at `/`."""
    found: dict[str, StaticFile] = {}
    root = files("setpoint.dashboard") / "static"
    if root.is_dir():
        _collect(root, "/", found)
    start = found.get("/index.html")
    return {**found, "/": start} if start is not None else {"/": StaticFile.of("index.txt", _NOT_BUILT.encode())}


def _collect(folder: Traversable, path: str, found: dict[str, StaticFile]) -> None:
    for one in folder.iterdir():
        if one.is_dir():
            _collect(one, f"{path}{one.name}/", found)
        else:
            found[f"{path}{one.name}"] = StaticFile.of(one.name, one.read_bytes())


def static_response(file: StaticFile, request: web.Request) -> web.Response:
    """The answer to a request for a file; nothing when the browser has it already."""
    is_hashed = request.path.startswith(_HASHED_FOLDER)
    headers = {
        "ETag": file.etag,
        "Cache-Control": "public, max-age=31536000, immutable" if is_hashed else "no-cache",
    }
    if request.headers.get("If-None-Match") == file.etag:
        return web.Response(status=304, headers=headers)
    is_text = file.content_type.startswith("text/")
    return web.Response(
        body=file.content, headers=headers, content_type=file.content_type, charset="utf-8" if is_text else None
    )
