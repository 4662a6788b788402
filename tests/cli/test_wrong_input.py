"""Wrong input is understood where it is unambiguous; else it is told in its own words, and all of it at once."""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.clients.admin_api import connect_admin
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.yaml_documents import read_documents
from setpoint.errors import ManifestInvalid
from tests.cli.workspace import Workspace, bucket

MISSPELT = """\
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {name: logs}
sepc: {location: EU}
"""
# What is wrong with it, without the name of the file.
NO_SEPC = "StorageBucket logs: there is no field sepc; did you mean spec?"
NEWER = MISSPELT.replace("sepc", "spec").replace("v1beta1", "v1alpha9")
NO_VERSION = (
    "StorageBucket logs: apiVersion: there is no StorageBucket of storage.cnrm.cloud.google.com/v1alpha9; "
    "did you mean storage.cnrm.cloud.google.com/v1beta1?"
)
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{a: b}}\n"


# --- Members and versions that a type does not have -------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "apply", "graph", "reconcile", "delete"])
def test_every_command_with_a_file_refuses_an_unknown_member_and_another_version(
    workspace: Workspace, command: str
) -> None:
    workspace.write(MISSPELT, NEWER.replace("logs", "more"))

    done = workspace.run(command, "-f", "manifest.yaml")

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: manifest.yaml:4: {NO_SEPC}",
        f"error: manifest.yaml:6: {NO_VERSION.replace('logs', 'more')}",
    ]
    assert workspace.in_cloud(lambda cloud: cloud.journal.entries) == ()


@pytest.mark.parametrize(("text", "message"), [(MISSPELT, NO_SEPC), (NEWER, NO_VERSION)])
@pytest.mark.parametrize("store", ["memory:", "sqlite:///{}/state.db"])
def test_the_embedded_store_refuses_them_as_well(tmp_path: Path, store: str, text: str, message: str) -> None:
    (document,) = read_documents(text, "a.yaml")
    assert isinstance(document.value, dict)
    manifest = document.value

    async def refusal() -> str:
        async with open_engine(AppSettings(store.format(tmp_path)), StoreAccess.WRITE) as engine:
            with pytest.raises(ManifestInvalid) as refused:
                await engine.store.apply(manifest)
            assert (await engine.store.list()).resources == ()
            return str(refused.value)

    assert asyncio.run(refusal()) == message


def test_a_running_process_refuses_them_on_its_socket(workspace: Workspace) -> None:
    workspace.daemon()
    document: JsonObject = {
        "apiVersion": "storage.cnrm.cloud.google.com/v1beta1",
        "kind": "StorageBucket",
        "metadata": {"name": "logs"},
        "sepc": {"location": "EU"},
    }
    newer: JsonObject = {
        **document,
        "apiVersion": "storage.cnrm.cloud.google.com/v1alpha9",
        "metadata": {"name": "more"},
    }

    async def refusal() -> str:
        client = await connect_admin(workspace.folder / ".setpoint/state.db")
        assert client is not None
        try:
            with pytest.raises(ManifestInvalid) as refused:
                await client.apply([document, newer])
        finally:
            await client.close()
        return str(refused.value)

    assert asyncio.run(refusal()).splitlines() == [
        NO_SEPC,
        NO_VERSION.replace("logs", "more"),
        NO_SEPC.replace("logs", "more"),
    ]
    assert workspace.in_cloud(lambda cloud: cloud.journal.entries) == ()


def test_the_output_of_get_is_applied_again(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.write(workspace.run("get", "StorageBucket/logs", "-o", "yaml").stdout)

    done = workspace.run("apply", "-f", "manifest.yaml")

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {a: 7}\nspec: {}\n", "there is no field spec: a ConfigMap has apiVersion, kind, metadata, data, binar"),
        ("daat: {a: b}\n", "there is no field daat; did you mean data?"),
        ("stringData: {a: b}\n", "there is no field stringData"),
    ],
)
def test_an_object_without_a_kind_of_ours_has_its_own_members(workspace: Workspace, text: str, message: str) -> None:
    workspace.write(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\n{text}")

    done = workspace.run("apply", "-f", "manifest.yaml")

    assert done.returncode == 1
    assert message in done.stderr


# --- All mistakes at once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "apply", "graph"])
def test_all_mistakes_of_all_files_are_told_at_once_with_file_and_line(workspace: Workspace, command: str) -> None:
    labels = "metadata: {name: logs, labels: {a: b c}, annotations: {d: 7}}"
    workspace.write(MISSPELT.replace("metadata: {name: logs}", labels).replace("sepc: {", "spec: {loction: EU, "))
    workspace.write("kind: StorageBucket\n", file="second.yaml")
    workspace.write("a: [\n", file="third.yaml")

    done = workspace.run(command, "-f", "manifest.yaml", "-f", "second.yaml", "-f", "third.yaml", "-f", "none.yaml")

    assert done.returncode == 1
    assert [line.partition(", with a letter")[0] for line in done.stderr.splitlines()] == [
        "error: second.yaml:1: apiVersion is missing or not text: write it",
        "error: second.yaml:1: metadata.name is missing or not text: write it",
        "error: third.yaml:2: this is not YAML: did not find expected node content",
        "error: none.yaml: No such file or directory: name a file, a folder or - for standard input",
        "error: manifest.yaml:3: StorageBucket logs: metadata.labels.a cannot be 'b c': "
        'write letters, digits, "-", "_" and "."',
        "error: manifest.yaml:3: StorageBucket logs: metadata.annotations.d is a number: write it as text, in quotes",
        "error: manifest.yaml:4: StorageBucket default/logs: "
        "there is no field spec.loction; did you mean spec.location?",
    ]
    assert json.loads(workspace.run("get", "-A", "-o", "json").stdout)["items"] == []


def test_an_item_of_a_list_has_its_own_lines(workspace: Workspace) -> None:
    items = "".join(
        f"- apiVersion: storage.cnrm.cloud.google.com/v1beta1\n  kind: StorageBucket\n  metadata: {{name: {name}}}\n"
        f"  spec:\n    {field}: EU\n"
        for name, field in (("one", "location"), ("two", "loction"))
    )
    workspace.write(f"apiVersion: v1\nkind: List\nitems:\n{items}")

    assert workspace.run("plan", "-f", "manifest.yaml").stderr == (
        "error: manifest.yaml:13: StorageBucket default/two: "
        "there is no field spec.loction; did you mean spec.location?\n"
    )


# --- Words of the command line ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [("-f", "a.yaml", "b.yaml"), ("a.yaml", "b.yaml"), ("folder",), ("folder/",), ("a.yaml", "-f", "b.yaml")],
)
def test_files_are_applied_with_and_without_the_option(workspace: Workspace, arguments: tuple[str, ...]) -> None:
    (workspace.folder / "folder").mkdir()
    for name in ("a", "b"):
        workspace.write(SECRET.format(name=name), file=f"{name}.yaml")
        workspace.write(SECRET.format(name=name), file=f"folder/{name}.yaml")

    done = workspace.run("apply", *arguments)

    assert (done.returncode, done.stderr) == (0, "")
    names = [one["metadata"]["name"] for one in json.loads(workspace.run("get", "-o", "json").stdout)["items"]]
    assert names == ["a", "b"]


@pytest.mark.parametrize("command", ["plan", "reconcile", "delete", "graph"])
def test_a_file_among_the_targets_is_a_file(workspace: Workspace, command: str) -> None:
    (workspace.folder / "folder").mkdir()
    workspace.apply(bucket("logs"))
    workspace.write(bucket("logs"), file="folder/a.yaml")

    done = workspace.run(command, "folder/a.yaml")

    assert done.stderr == ""
    assert "StorageBucket default/logs" in done.stdout


def test_a_target_with_the_form_of_a_kind_and_a_name_is_a_target(workspace: Workspace) -> None:
    (workspace.folder / "StorageBucket/logs").mkdir(parents=True)
    workspace.apply(bucket("logs"))

    assert "StorageBucket default/logs" in workspace.run("plan", "StorageBucket/logs").stdout


def test_a_pipe_is_read_where_it_is_named_and_refused_in_a_folder(workspace: Workspace) -> None:
    (workspace.folder / "declared").mkdir()
    pipe = workspace.folder / "declared/a.yaml"
    os.mkfifo(pipe)

    refused = workspace.run("apply", "-f", "declared")
    with ThreadPoolExecutor() as writer:
        writing = writer.submit(pipe.write_text, bucket("logs"), "utf-8")
        applied = workspace.run("apply", "-f", "declared/a.yaml")
        writing.result()

    told = "declared/a.yaml: this is no file: remove it, or name the others"
    assert (refused.returncode, refused.stderr) == (1, f"error: {told}\n")
    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/logs created\ncreated 1\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("apply",), "nothing to apply: name a file or folder with -f, or - for standard input"),
        (
            ("apply", "-f", "empty"),
            "empty: no manifest in this folder: it has no file that ends in .yaml or .yml or .json",
        ),
        (
            ("apply", "-f", "https://example.com/a.yaml"),
            "https://example.com/a.yaml: a URL is not read: download it, and name the file, or - for standard input",
        ),
        (("apply", "none.yaml"), "none.yaml: No such file or directory: name a file, a folder or - for standard input"),
        (("plan", "none.yaml"), "none.yaml: No such file or directory: name a file, a folder or - for standard input"),
        *(
            (
                (command, "Buckets"),
                "no kind 'Buckets' is known here; did you mean StorageBucket? "
                "(a resource is named KIND/NAME, such as StorageBucket/logs)",
            )
            for command in ("get", "reconcile", "delete", "plan", "describe")
        ),
        (
            ("reconcile", "--timeout", "0"),
            "--timeout: '0' is no duration above 0: write 1h30m, 90s, 500ms or a number of seconds",
        ),
        (
            ("reconcile", "--timeout", "-1.5"),
            "--timeout: '-1.5' is no duration above 0: write 1h30m, 90s, 500ms or a number of seconds",
        ),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_told_in_its_own_words(
    workspace: Workspace, arguments: tuple[str, ...], message: str
) -> None:
    (workspace.folder / "empty").mkdir()

    done = workspace.run(*arguments)

    assert (done.returncode, done.stderr) == (1, f"error: {message}\n")


@pytest.mark.parametrize("timeout", ["30", "1.5", "30s"])
def test_a_timeout_without_a_unit_is_in_seconds(workspace: Workspace, timeout: str) -> None:
    workspace.write(SECRET.format(name="a"))

    assert workspace.run("apply", "-f", "manifest.yaml", "--timeout", timeout).returncode == 0


@pytest.mark.parametrize(
    "arguments", [("--store", "sqlite:///other.db", "get"), ("get", "--store", "sqlite:///other.db")]
)
def test_the_store_is_named_on_either_side_of_the_command(workspace: Workspace, arguments: tuple[str, ...]) -> None:
    workspace.write(SECRET.format(name="a"))
    workspace.run("apply", "--store", "sqlite:///other.db", "--cookie-location", "annotation", "-f", "manifest.yaml")

    assert "Secret" in workspace.run(*arguments).stdout
    assert "Secret" not in workspace.run("get").stdout


def test_the_option_after_the_command_decides(workspace: Workspace) -> None:
    workspace.write(SECRET.format(name="a"))
    workspace.run("apply", "-f", "manifest.yaml", "--store", "sqlite:///other.db")

    assert "Secret" in workspace.run("--store", "sqlite:///third.db", "get", "--store", "sqlite:///other.db").stdout


def test_the_cookie_location_is_named_on_either_side_of_the_command(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))

    workspace.run("apply", "-f", "manifest.yaml", "--cookie-location", "annotation")

    (logs,) = json.loads(workspace.run("get", "-o", "json").stdout)["items"]
    assert "cnrm.cloud.google.com/last-changed-cookie" in logs["metadata"]["annotations"]
