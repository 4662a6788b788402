"""A bucket in an emulator by other authors, read and changed with Google's own client.

The emulator answers 404 without a body, takes only the name from an insert, replaces the labels with those of a patch
instead of merging them, and takes no null: a label or a part cannot be removed from it. It pays no attention to
`ifMetagenerationMatch`. Every bucket is in US. So nothing is removed here, and conflicts are not tested.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from tests.cli.programs import DEADLINE
from tests.forking.processes import SETPOINT, Start, run
from tests.kinds.kind_harness import bucket

FIRST = bucket({"location": "US"}, labels={"team": "data"})
SECOND = bucket({"location": "US", "versioning": {"enabled": True}}, labels={"team": "ops"})


@pytest.fixture
def emulator() -> Iterator[str]:
    """The address of the emulator, which keeps everything in memory and is gone afterwards."""
    with HTTPServer(("127.0.0.1", 0), partial(RequestHandler, Storage(use_memory_fs=True))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(DEADLINE)


@pytest.fixture
def client(emulator: str) -> Iterator[Any]:
    """Google's client, which knows nothing of setpoint."""
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]  # google-auth leaves it untyped
    with closing(Client("some-project", credentials=anonymous, client_options={"api_endpoint": emulator})) as client:
        yield client


def test_a_bucket_is_created_as_declared(emulator: str, client: Any, tmp_path: Path) -> None:
    _write(tmp_path, FIRST)

    assert _setpoint(tmp_path, emulator, "apply") == "StorageBucket team/some-bucket created\ncreated 1"
    assert _setpoint(tmp_path, emulator, "apply") == "StorageBucket team/some-bucket unchanged\nunchanged 1"
    found = client.get_bucket("some-bucket")
    assert (found.location, found.storage_class) == ("US", "STANDARD")
    assert found.labels == {"managed-by-cnrm": "true", "team": "data"}
    # The emulator took no labels when it made the bucket: they came with a patch, and that was the only one.
    assert found.metageneration == 2


def test_an_edit_is_sent_once(emulator: str, client: Any, tmp_path: Path) -> None:
    _write(tmp_path, FIRST)
    _setpoint(tmp_path, emulator, "apply")
    _write(tmp_path, SECOND)

    assert _setpoint(tmp_path, emulator, "apply") == "StorageBucket team/some-bucket updated\nupdated 1"
    assert _setpoint(tmp_path, emulator, "reconcile") == "StorageBucket team/some-bucket unchanged\nunchanged 1"
    found = client.get_bucket("some-bucket")
    assert (found.labels["team"], found.versioning_enabled, found.metageneration) == ("ops", True, 3)


def test_drift_by_another_client_is_corrected(emulator: str, client: Any, tmp_path: Path) -> None:
    _write(tmp_path, SECOND)
    _setpoint(tmp_path, emulator, "apply")
    theirs = client.get_bucket("some-bucket")
    theirs.versioning_enabled = False
    theirs.labels = {"managed-by-cnrm": "true", "team": "another-team"}
    theirs.patch()

    assert _setpoint(tmp_path, emulator, "reconcile") == "StorageBucket team/some-bucket updated\nupdated 1"
    found = client.get_bucket("some-bucket")
    assert (found.labels["team"], found.versioning_enabled) == ("ops", True)


def test_a_bucket_that_another_client_created_is_adopted(emulator: str, client: Any, tmp_path: Path) -> None:
    client.create_bucket("some-bucket")
    _write(tmp_path, SECOND)

    told = "StorageBucket team/some-bucket adopted: it was there before, and was updated\nadopted 1"
    assert _setpoint(tmp_path, emulator, "apply") == told
    assert client.get_bucket("some-bucket").versioning_enabled is True


def test_a_deleted_bucket_is_gone(emulator: str, client: Any, tmp_path: Path) -> None:
    _write(tmp_path, FIRST)
    _setpoint(tmp_path, emulator, "apply")

    assert _setpoint(tmp_path, emulator, "delete") == (
        "StorageBucket team/some-bucket deleted: projects/some-project/buckets/some-bucket\ndeleted 1"
    )
    assert client.lookup_bucket("some-bucket") is None


def test_a_bucket_with_an_object_in_it_is_not_deleted(emulator: str, client: Any, tmp_path: Path) -> None:
    _write(tmp_path, FIRST)
    _setpoint(tmp_path, emulator, "apply")
    client.bucket("some-bucket").blob("report.txt").upload_from_string("figures")

    printed = _setpoint(tmp_path, emulator, "delete", code=1)

    assert "bucket some-bucket is not empty: it holds 'report.txt'" in printed
    assert client.bucket("some-bucket").blob("report.txt").download_as_bytes() == b"figures"


def _write(folder: Path, manifest: Mapping[str, Any]) -> None:
    # JSON is YAML.
    (folder / "manifest.yaml").write_bytes(orjson.dumps(manifest))


def _setpoint(folder: Path, emulator: str, command: str, *, code: int = 0) -> str:
    """What the command prints, run on the manifest as a process of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    own = {"HOME": str(folder), "SETPOINT_GCP_AUTH": "anonymous", "STORAGE_EMULATOR_HOST": emulator}
    environment = {**kept, **own, "PYTHONUTF8": "1"}
    done = run(Start((SETPOINT, command, "-f", "manifest.yaml", "--timeout", "10s"), folder, environment), DEADLINE)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.strip()
