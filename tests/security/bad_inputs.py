"""Input that is wrong in every way we could think of, and what becomes of it: `python -m tests.security.bad_inputs`.

The program prints a line for each input: the class of the error and its message, or the result. Under `python -O` it
has to print the same.
"""

import asyncio
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from click.testing import CliRunner

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.cli.main import main as commands
from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.google.operations import SqlOperation
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.core.values.yaml_documents import read_documents
from setpoint.engine.kind import Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState
from setpoint.engine.step.reconcile import preview
from setpoint.engine.transfer.export_format import read_export
from setpoint.errors import SetpointError
from setpoint.kinds.gcp.shared.cloud_sql import is_operation_done, pending_operation
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.kinds.kubernetes_object.location import parse_object_location
from setpoint.library.manifests.reading import load_manifests
from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.replay.world_file import unpack_world

ODD: Final[tuple[Any, ...]] = (None, True, 7, 1.5, "", "..", "text", [], [None], {}, {"a": None}, [{"a": [1]}])
GOOGLE: Final = "cnrm.cloud.google.com"


class OddService(HttpClient):
    """A service that answers every request with the same body."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._body = body

    async def send(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, {"Content-Type": "application/json"}, self._body)


def outcome_of(attempt: Callable[[], object]) -> str:
    """The error or the result of an attempt, as text."""
    try:
        return f"ok: {attempt()!r}"
    except SetpointError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - every other error is to be seen
        return f"UNEXPECTED {type(error).__name__}: {error}"


def kinds(google: GoogleClient) -> Mapping[str, Any]:
    found = (StorageBucketKind(google), SqlInstanceKind(google), SqlDatabaseKind(google), SqlUserKind(google))
    return {kind.name: kind for kind in found}


def google_client(body: bytes = b"{}") -> GoogleClient:
    return GoogleClient(OddService(body), GoogleSettings())


# --- Manifests --------------------------------------------------------------------------------------------------------

SPECS: Final[dict[str, dict[str, Any]]] = {
    "StorageBucket": {"location": "EU", "autoclass": {"enabled": True}, "lifecycleRule": [], "logging": {}},
    "SQLInstance": {
        "databaseVersion": "MYSQL_8_0",
        "region": "europe-west1",
        "settings": {"tier": "db-f1-micro", "ipConfiguration": {}, "edition": "ENTERPRISE"},
        "rootPassword": {"value": "x"},
        "cloneSource": {"sqlInstanceRef": {"external": "other"}},
        "replicaConfiguration": {"password": {"value": "x"}},
    },
    "SQLDatabase": {"instanceRef": {"external": "db"}, "charset": "utf8", "collation": "utf8_bin"},
    "SQLUser": {"instanceRef": {"external": "db"}, "host": "h", "password": {"value": "x"}, "passwordPolicy": {}},
}


def damaged(value: Any) -> Iterator[Any]:
    """The value with an odd one in the place of each part of it, at every depth."""
    yield from ODD
    if isinstance(value, dict):
        for name, member in value.items():
            yield {key: one for key, one in value.items() if key != name}
            yield from ({**value, name: one} for one in damaged(member))


def of_manifests() -> Iterator[tuple[str, Callable[[], object]]]:
    google = google_client()
    for name, kind in kinds(google).items():
        group = kind.group
        for number, spec in enumerate(damaged(SPECS[name])):
            metadata = {"name": "good", "namespace": "team", "annotations": {f"{GOOGLE}/project-id": "acme"}}
            tree = {"apiVersion": f"{group}/v1beta1", "kind": name, "metadata": metadata, "spec": spec}
            yield f"{name} spec {number}", partial(_declared, kind, tree)
        for annotation in ("unmanaged", "default-to-gcp-fields", "ignore-unspecified-fields"):
            for text in ("spec", "metadata", "spec.settings", "spec..", "", "spec[0]", "spec.lifecycleRule[a=b]"):
                annotated = {"name": "good", "annotations": {f"{GOOGLE}/{annotation}": text}}
                tree = {"apiVersion": f"{group}/v1beta1", "kind": name, "metadata": annotated, "spec": SPECS[name]}
                yield f"{name} {annotation} {text}", partial(_previewed, tree)


def _declared(kind: Any, tree: dict[str, Any]) -> object:
    resource = Resource(tree)
    kind.check(resource)
    kind.dependencies(resource)
    return kind.locate(resource, ResolvedReferences()), kind.declare(resource, ResolvedReferences())


def _previewed(tree: dict[str, Any]) -> object:
    """The plan of the resource, in a store of its own; nothing can be reached from there."""

    async def plan() -> object:
        nowhere = {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:9", "SETPOINT_GCP_AUTH": "anonymous"}
        sql = {"CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": "http://127.0.0.1:9"}
        async with open_engine(AppSettings("memory:", environment={**nowhere, **sql}), StoreAccess.WRITE) as engine:
            resource = await engine.store.apply(tree)
            return type(await preview(resource.ref, engine)).__name__

    return asyncio.run(plan())


OBJECT: Final = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "eA=="}}


def of_objects() -> Iterator[tuple[str, Callable[[], object]]]:
    for number, manifest in enumerate([*damaged(OBJECT), {"a": {"$ref": {}}}, {"$ref": {"kind": 1}}, "${ref:", "a: ["]):
        tree = {
            "apiVersion": "setpoint.dev/v1alpha1",
            "kind": "KubernetesObject",
            "metadata": {"name": "a"},
            "spec": {"manifest": manifest},
        }
        yield f"object {number}", partial(_previewed, tree)


# --- Files, statuses, responses, command lines ------------------------------------------------------------------------


def of_files() -> Iterator[tuple[str, Callable[[], object]]]:
    header = {"setpoint": "1", "at": "t", "store": "memory", "revision": "1", "collects": False, "whole": True}
    for number, document in enumerate(damaged({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}})):
        lines = [{**header, "resources": 1, "world": 1}, {"document": document}]
        world = gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        yield f"world {number}", partial(_unpacked, world)
    for number, document in enumerate(
        damaged({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "export": {}})
    ):
        text = json.dumps(document)
        yield f"export {number}", partial(_exported, text)
        yield f"file {number}", partial(_loaded, text)


def _unpacked(world: bytes) -> object:
    return unpack_world(world, "world.gz").resources


def _exported(text: str) -> object:
    return read_export(read_documents(text, "export"))


def _loaded(text: str) -> object:
    with TemporaryDirectory() as folder:
        file = Path(folder, "a.yaml")
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            return [one.ref for one in load_manifests([str(file)])]
        except SetpointError as error:
            raise type(error)(str(error).replace(folder, "")) from None


def of_statuses() -> Iterator[tuple[str, Callable[[], object]]]:
    for number, status in enumerate(damaged({"setpoint": {"location": "l", "operation": "o", "step": {}, "wait": {}}})):
        yield f"status {number}", partial(StoredState.of, Resource({"kind": "A", "status": status}))
    for text in ("", "..", "projects/p/buckets/..", "projects/p/instances/i/databases/a/../b", "a b c @ d", "\x00"):
        for name, kind in kinds(google_client()).items():
            yield f"location {name} {text!r}", partial(_observed, kind, Location(text))
        yield f"object location {text!r}", partial(parse_object_location, text)
        yield f"operation {text!r}", partial(_polled, text)
        yield f"named operation {text!r}", partial(pending_operation, SqlOperation(text, "PENDING"), "p")


def _polled(operation: str) -> object:
    return asyncio.run(is_operation_done(operation, google_client()))


def of_responses() -> Iterator[tuple[str, Callable[[], object]]]:
    places = {
        "StorageBucket": "projects/p/buckets/b",
        "SQLInstance": "projects/p/instances/i",
        "SQLDatabase": "projects/p/instances/i/databases/d",
        "SQLUser": "projects/p/instances/i/users/u",
    }
    whole = {"kind": "sql#usersList", "name": "a", "items": [{"name": "u"}], "settings": {"tier": "t"}, "autoclass": {}}
    bodies = [b"", b"{", b"\xff", b"null", *(json.dumps(one).encode() for one in damaged(whole))]
    for number, body in enumerate(bodies):
        for name, kind in kinds(google_client(body)).items():
            place = Location(places[name])
            yield f"response {number} {name}", partial(_observed, kind, place)


def _observed(kind: Any, place: Location) -> object:
    found = asyncio.run(kind.observe(place))
    return kind.view(found.live) if hasattr(found, "live") else found


def of_requests() -> Iterator[tuple[str, Callable[[], object]]]:
    bodies = [b"", b"{", *(json.dumps(one).encode() for one in damaged({"name": "a", "settings": {"tier": "x"}}))]
    for number, body in enumerate(bodies):
        for path in ("/sql/v1beta4/projects/p/instances", "/storage/v1/b", "/sql/v1beta4/projects/../instances"):
            request = CloudRequest("POST", path, {"project": "p"}, body, "application/json")
            yield f"request {number} {path}", partial(_answered, request)


def _answered(request: CloudRequest) -> object:
    answer = Cloud().handle(request)
    return None if answer is None else answer.status


def of_command_lines() -> Iterator[tuple[str, Callable[[], object]]]:
    words = ["", "--", "-x", "get", "apply", "plan", "..", "\x1b[2J", "a/b", "-f", "-o", "json", "--world", "run", "0"]
    for first in words:
        for second in ("..", "a/b", "--all", "-f"):
            yield f"command {first!r} {second!r}", partial(_run, [first, second])


def _run(line: list[str]) -> object:
    # Some lines name the folder above: it has this one alone.
    with TemporaryDirectory() as above, TemporaryDirectory(dir=above) as folder, chdir(folder):
        done = CliRunner().invoke(commands, ["--store", "memory:", *line])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def main() -> int:
    """Prints the outcome of every input."""
    count = 0
    for inputs in (of_manifests, of_objects, of_files, of_statuses, of_responses, of_requests, of_command_lines):
        for name, attempt in inputs():
            count += 1
            sys.stdout.write(f"{name!a}: {outcome_of(attempt)!a}\n")
    sys.stdout.write(f"{count} inputs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
