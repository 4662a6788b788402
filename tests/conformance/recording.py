"""A recording in the form of Config Connector's own, with everything blanked out that those have blanked out."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.two_controllers import Shape, secret
from tests.conformance.wire import PROJECT, SQL, STORAGE, Asked, Told, Wire


def write_recording(folder: Path, shape: Shape, wire: Wire) -> None:
    """The folder of a fixture: the manifests, and the log of what went over the wire."""
    folder.mkdir()
    secrets = [secret(name, text) for name, text in shape.secrets.items()]
    dependencies = [*secrets, *shape.dependencies]
    if dependencies:
        (folder / "dependencies.yaml").write_text(yaml.safe_dump_all(dependencies))
    (folder / "create.yaml").write_text(yaml.safe_dump(shape.create))
    if shape.update:
        (folder / "update.yaml").write_text(yaml.safe_dump(shape.update))
    (folder / "http.log").write_text("\n---\n\n".join(_entry(asked, told) for asked, told in wire.log))


def _entry(asked: Asked, told: Told) -> str:
    status, body = told
    words = {200: "OK", 204: "No Content", 404: "Not Found"}
    lines = [f"{asked.method} {_address(asked)}", "User-Agent: x", ""]
    if asked.body is not None:
        lines += [json.dumps(asked.body, indent=2, sort_keys=True), ""]
    lines += [f"{status} {words[status]}", "Content-Type: application/json", ""]
    return "\n".join([*lines, "" if body is None else json.dumps(_blanked(body), indent=2, sort_keys=True), ""])


def _address(asked: Asked) -> str:
    is_storage = asked.steps[0] == "b"
    base = STORAGE if is_storage else f"{SQL}/projects/{PROJECT}"
    query = "&".join(f"{name}={value.replace('%', '%25')}" for name, value in asked.query.items())
    return f"{base}/{'/'.join(asked.steps)}?alt=json&prettyPrint=false{'&' if query else ''}{query}"


def _blanked(body: Any) -> Any:
    if "settings" in body and "state" in body:
        network = {**body["settings"]["ipConfiguration"], "authorizedNetworks": []}
        return {**body, "settings": {**body["settings"], "ipConfiguration": network, "settingsVersion": "123"}}
    if body.get("kind") == "sql#usersList":
        return {**body, "items": [{**one, "host": ""} for one in body["items"]]}
    return body
