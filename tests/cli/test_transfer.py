"""`setpoint export` and `setpoint import`, as a user types them."""

import json
import stat
from pathlib import Path

import pytest
import yaml

from tests.cli.workspace import Workspace, bucket

NEW = ("--store", "sqlite:///new.db")
PAUSED = (
    "In the store they came from they are paused: nothing is done for them from there. "
    "`setpoint plan` shows what is left to do here"
)
NOT_PAUSED = (
    "In the store they came from they are not paused: two stores would reconcile the same objects. Run no controller "
    "for that store any more, and put it away; `setpoint delete` there would delete the objects. "
    "`setpoint plan` shows what is left to do here"
)
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {app: Sesame-1-app}\n"
USER = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLUser
metadata:
  name: app
  annotations: {cnrm.cloud.google.com/project-id: some-project}
spec:
  host: "%"
  instanceRef: {external: main}
  password: {valueFrom: {secretKeyRef: {name: s, key: app}}}
"""


def writes(workspace: Workspace) -> list[str]:
    return [entry.method for entry in workspace.in_cloud(lambda cloud: cloud.journal.entries) if entry.is_write]


@pytest.fixture
def user(workspace: Workspace) -> Workspace:
    """A workspace with a database user that has a password."""
    workspace.make_instance("main")
    workspace.apply(SECRET, USER)
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    return workspace


# --- From store to store ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_an_imported_resource_is_in_sync_in_the_other_store(workspace: Workspace, form: str) -> None:
    workspace.apply(bucket("logs"), bucket("more"))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    out = workspace.run("export", "-o", form, "--to", "export.txt", "--pause")
    lines = workspace.run(*NEW, "import", "-f", "export.txt").stdout.splitlines()
    plan = workspace.run(*NEW, "plan")
    again = workspace.run(*NEW, "reconcile").stdout.splitlines()

    assert (out.stdout, out.stderr) == (
        "",
        "2 resources, without their Secrets in export.txt, which only you can read\n",
    )
    assert lines == ["StorageBucket default/logs moved", "StorageBucket default/more moved", PAUSED]
    assert (plan.returncode, plan.stdout.count("in sync: nothing changed: fast path")) == (0, 2)
    assert again == ["StorageBucket default/logs unchanged", "StorageBucket default/more unchanged", "unchanged 2"]
    assert writes(workspace) == []


def test_an_export_without_pause_says_what_to_do(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    (workspace.folder / "export.yaml").write_text(workspace.run("export").stdout, encoding="utf-8")

    lines = workspace.run(*NEW, "import", "-f", "export.yaml").stdout.splitlines()

    assert lines == ["StorageBucket default/logs moved", NOT_PAUSED]


def test_only_the_named_resources_are_exported(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("more"))

    exported = list(yaml.safe_load_all(workspace.run("export", "StorageBucket/more").stdout))

    assert [one["kind"] for one in exported] == ["Export", "StorageBucket", "ExportEnd"]
    assert exported[1]["metadata"]["name"] == "more"


def test_with_secrets_exports_a_password(user: Workspace) -> None:
    user.run("export", "--with-secrets", "--pause", "--to", "export.yaml")
    lines = user.run(*NEW, "import", "-f", "export.yaml").stdout.splitlines()
    user.run(*NEW, "reconcile")

    assert lines == ["SQLUser default/app moved", PAUSED]
    assert writes(user) == []


def test_a_password_that_was_not_exported_is_warned_about_and_sent_once(user: Workspace) -> None:
    user.run("export", "--to", "export.yaml")
    user.write(SECRET)
    user.run(*NEW, "apply", "-f", "manifest.yaml")
    lines = user.run(*NEW, "import", "-f", "export.yaml").stdout.splitlines()
    user.run(*NEW, "reconcile")

    message = "spec.password is not known to be the same here: it counts as new, and is sent once"
    assert lines[0] == f"SQLUser default/app moved; {message}"
    assert writes(user) == ["PUT"]


# --- Secrets ----------------------------------------------------------------------------------------------------------


def test_without_with_secrets_no_password_is_exported(user: Workspace) -> None:
    exported = user.run("export").stdout

    assert "Sesame" not in exported
    assert "U2VzYW1l" not in exported
    assert [one["kind"] for one in yaml.safe_load_all(exported)] == ["Export", "SQLUser", "ExportEnd"]


def test_with_secrets_needs_a_file_or_an_explicit_pipe(user: Workspace) -> None:
    refused = user.run("export", "--with-secrets")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "error: --with-secrets writes passwords in clear text: name a file with --to, which only you can read then, "
        "or write --to - to pipe it on\n"
    )


def test_with_secrets_can_write_to_standard_output(user: Workspace) -> None:
    exported = user.run("export", "--with-secrets", "--to", "-").stdout

    assert [one["kind"] for one in yaml.safe_load_all(exported)] == ["Export", "Secret", "SQLUser", "ExportEnd"]


def test_an_export_is_private_even_where_it_replaces_a_public_file(user: Workspace) -> None:
    file = user.folder / "export.yaml"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o644)

    user.run("export", "--with-secrets", "--to", "export.yaml")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text(encoding="utf-8").startswith("apiVersion: setpoint.dev/v1alpha1\nkind: Export\n")
    assert [one.name for one in user.folder.glob(".*export*")] == []


def test_a_secret_that_is_missing_is_named_before_anything_is_written(user: Workspace) -> None:
    user.run("export", "--to", "export.yaml")
    refused = user.run(*NEW, "import", "-f", "export.yaml")

    assert refused.stderr == (
        "error: Secret default/s: referred to, and neither in the export nor in this store. Put it there first, or "
        "export it, too: Secrets with --with-secrets\n"
    )
    assert json.loads(user.run(*NEW, "get", "-o", "json").stdout)["items"] == []


# --- A running controller ---------------------------------------------------------------------------------------------


def test_while_a_controller_runs_a_store_can_be_copied_but_neither_paused_nor_filled(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.daemon()

    copied = workspace.run("export", "--to", "export.yaml")
    paused = workspace.run("export", "--pause")
    filled = workspace.run("import", "-f", "export.yaml")

    assert copied.returncode == 0
    assert copied.stderr.splitlines()[0] == (
        "a controller is running for this store: this is a copy of one moment. To move, stop it, and use --pause"
    )
    assert (paused.returncode, filled.returncode) == (1, 1)
    assert "is in use by process" in paused.stderr
    assert "is in use by process" in filled.stderr


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export"], "there is nothing to export in default: -n names another, and -A means all"),
        (["export", "-A", "--pause"], "there is nothing to export anywhere: -n names another, and -A means all"),
        (
            ["export", "StorageBucket/nosuch"],
            "StorageBucket nosuch is not declared here: `setpoint get -A` lists what is",
        ),
        (
            ["export", "Secret/s"],
            "a Secret is exported with the resources that refer to it: name those, and --with-secrets",
        ),
        (["import"], "nothing to import: name kinds, such as StorageBucket, or an export with -f"),
        (["import", "-f", "nosuch.yaml"], "nosuch.yaml: No such file or directory: name a file, a folder or - for"),
        (["import", "-f", "empty.yaml"], "no export in empty.yaml: `setpoint export` makes one"),
        (["import", "-f", "manifest.yaml"], "manifest.yaml:1: this is no export: `setpoint export` makes one"),
        (["import", "-f", "broken.json"], "broken.json:3: this is not JSON, or breaks off here: export again"),
        (["import", "-f", "deep.json"], "deep.json: this is nested deeper than 254 levels: export in parts"),
        (["import", "-f", "broken.yaml"], "broken.yaml:2: this is not YAML"),
    ],
)
def test_bad_input_is_one_clear_line(workspace: Workspace, arguments: list[str], message: str) -> None:
    workspace.write(bucket("logs"))
    workspace.write("\n", file="empty.yaml")
    workspace.write('{"a": 1}\n\n{"b": ', file="broken.json")
    workspace.write('{"a": ' + "[" * 100_000, file="deep.json")
    workspace.write("a: [\n", file="broken.yaml")

    refused = workspace.run(*arguments)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"error: {message}")
    assert refused.stderr.count("\n") == 1
    assert not (workspace.folder / ".setpoint").exists()


def test_a_folder_that_is_not_there_is_named(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))

    refused = workspace.run("export", "--to", "nosuch/export.yaml")

    assert refused.stderr == (
        "error: --to nosuch/export.yaml: No such file or directory: name a file in a folder that you can write to\n"
    )


def test_json_exports_are_read_with_any_white_space(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    lines = workspace.run("export", "-o", "json").stdout.splitlines()
    pretty = "\n\n".join(json.dumps(json.loads(line), indent=2) for line in lines)
    Path(workspace.folder / "export.json").write_text(pretty, encoding="utf-8")

    assert workspace.run(*NEW, "import", "-f", "export.json").returncode == 0


def test_an_export_is_no_manifest(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.run("export", "--to", "export.yaml")

    refused = workspace.run(*NEW, "apply", "-f", "export.yaml")

    assert refused.stderr == "error: export.yaml:1: this is an export, and no manifest: `setpoint import` takes it\n"


def test_a_child_exported_without_its_owner_has_none_and_a_warning_says_so(workspace: Workspace) -> None:
    owner = "  ownerReferences: [{apiVersion: v1, kind: Owner, name: o, uid: x}]\nspec:"
    workspace.apply(bucket("logs").replace("spec:", owner))

    exported = workspace.run("export")

    assert exported.stderr == "StorageBucket default/logs: its owner is not exported, so that it has none elsewhere\n"
    assert "ownerReferences" not in exported.stdout
