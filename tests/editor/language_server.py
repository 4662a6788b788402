"""The language server that editors use for YAML, as a process: what it says of a text, and what it shows on hover."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.editor.node_packages import installed

_HERE: Final = Path(__file__).parent


class LanguageServer:
    """A client of the server, with one schema for every file."""

    def __init__(self, schema: Path) -> None:
        program = installed(_HERE) / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
        self._process = subprocess.Popen(
            ["node", str(program), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._last = 0
        yaml = {"schemas": {schema.as_uri(): "*.yaml"}, "hover": True, "validate": True}
        self._settings = {"yaml": {**yaml, "schemaStore": {"enable": False}}}

    def __enter__(self) -> Self:
        self._request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self._send({"method": "initialized", "params": {}})
        self._send({"method": "workspace/didChangeConfiguration", "params": {"settings": self._settings}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def problems(self, name: str, text: str) -> list[tuple[int, str]]:
        """The line, from 1 on, and the text of each problem that an editor would underline."""
        document = {"uri": f"file:///{name}", "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        while True:
            found = self._receive()
            if found.get("method") == "textDocument/publishDiagnostics" and found["params"]["uri"] == document["uri"]:
                return [(one["range"]["start"]["line"] + 1, one["message"]) for one in found["params"]["diagnostics"]]

    def hover(self, name: str, line: int, column: int) -> str:
        """What is shown at a place of an open text; lines and columns count from 1."""
        place = {"textDocument": {"uri": f"file:///{name}"}, "position": {"line": line - 1, "character": column - 1}}
        shown: str = self._request("textDocument/hover", place)["contents"]["value"]
        return shown

    def _request(self, method: str, params: Mapping[str, Any]) -> Any:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        while True:
            found = self._receive()
            if found.get("id") == self._last and "method" not in found:
                return found["result"]

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        """The next message of the server; its own requests are answered with nothing."""
        assert self._process.stdout is not None
        length = 0
        while (line := self._process.stdout.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not length:
            raise EOFError("the language server has ended")
        found: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if "method" in found and "id" in found:
            items = found["params"].get("items", ()) if found["method"] == "workspace/configuration" else ()
            self._send({"id": found["id"], "result": [self._settings.get(one["section"], {}) for one in items] or None})
        return found
