"""A recording in the format of Config Connector's, with the same values blanked out."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.two_controllers import Shape, secret
from tests.conformance.wire import PROJECT, SQL, STORAGE, Wire, WireRequest, WireResponse


def write_recording(folder: Path, shape: Shape, wire: Wire) -> None:
    """Writes the folder of a fixture: the manifests, and the log of requests and responses."""
    folder.mkdir()
    secrets = [secret(name, text) for name, text in shape.secrets.items()]
    dependencies = [*secrets, *shape.dependencies]
    if dependencies:
        (folder / "dependencies.yaml").write_text(yaml.safe_dump_all(dependencies))
    (folder / "create.yaml").write_text(yaml.safe_dump(shape.create))
    if shape.update:
        (folder / "update.yaml").write_text(yaml.safe_dump(shape.update))
    (folder / "http.log").write_text("\n---\n\n".join(_entry(request, response) for request, response in wire.log))


def _entry(request: WireRequest, response: WireResponse) -> str:
    status, body = response
    words = {200: "OK", 204: "No Content", 404: "Not Found"}
    lines = [f"{request.method} {_address(request)}", "User-Agent: x", ""]
    if request.body is not None:
        lines += [json.dumps(request.body, indent=2, sort_keys=True), ""]
    lines += [f"{status} {words[status]}", "Content-Type: application/json", ""]
    return "\n".join([*lines, "" if body is None else json.dumps(_blanked(body), indent=2, sort_keys=True), ""])


def _address(request: WireRequest) -> str:
    is_storage = request.steps[0] == "b"
    base = STORAGE if is_storage else f"{SQL}/projects/{PROJECT}"
    query = "&".join(f"{name}={value.replace('%', '%25')}" for name, value in request.query.items())
    return f"{base}/{'/'.join(request.steps)}?alt=json&prettyPrint=false{'&' if query else ''}{query}"


def _blanked(body: Any) -> Any:
    if "settings" in body and "state" in body:
        network = {**body["settings"]["ipConfiguration"], "authorizedNetworks": []}
        return {**body, "settings": {**body["settings"], "ipConfiguration": network, "settingsVersion": "123"}}
    if body.get("kind") == "sql#usersList":
        return {**body, "items": [{**one, "host": ""} for one in body["items"]]}
    return body
