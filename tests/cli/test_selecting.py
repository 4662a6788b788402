"""Selecting what is declared: by kind, labels and fields; printing chosen fields; and what a shell completes."""

import subprocess
from collections.abc import Iterator, Sequence

import pytest

from tests.cli.workspace import Workspace, user_environment

FLEET = """
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {name: logs, labels: {team: web}, annotations: {cnrm.cloud.google.com/project-id: some-project}}
spec: {location: EU}
---
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {name: rest, labels: {team: data}, annotations: {cnrm.cloud.google.com/project-id: some-project}}
spec: {location: US}
---
apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLInstance
metadata: {name: shop, labels: {team: web}, annotations: {cnrm.cloud.google.com/project-id: some-project}}
spec: {databaseVersion: POSTGRES_16, region: europe-west1, settings: {tier: db-f1-micro}}
---
apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLDatabase
metadata: {name: orders, namespace: other, annotations: {cnrm.cloud.google.com/project-id: some-project}}
spec: {instanceRef: {name: shop, namespace: default}}
"""


_PLACE = "SQLInstance.spec.settings.locationPreference"
_BY_LOCATION = "StorageBucket/logs\nStorageBucket/rest\nSQLInstance/shop\n"
_DRAWN = """\
SQLInstance default/(1) ready
└── SQLDatabase other/(1) ready  ← spec.instanceRef
StorageBucket default/(2) ready
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with two buckets, an instance, and a database in another namespace, for tests that only read."""
    workspace = Workspace(tmp_path_factory.mktemp("fleet"), user_environment())
    with workspace:
        workspace.write(FLEET)
        assert workspace.run("apply", "-q", "-f", "manifest.yaml").returncode == 0
        yield workspace


@pytest.fixture
def fleet(shared: Workspace) -> Workspace:
    """That workspace."""
    return shared


@pytest.mark.parametrize(
    ("arguments", "subjects"),
    [
        (("describe", "-l", "team=web"), ["SQLInstance default/shop", "StorageBucket default/logs"]),
        (("describe", "StorageBucket"), ["StorageBucket default/logs", "StorageBucket default/rest"]),
        (("explain", "--filter", "name=rest"), ["StorageBucket default/rest"]),
        (("events", "-l", "team=data"), ["StorageBucket default/rest"]),
        (("events", "-A", "StorageBucket"), ["StorageBucket default/logs", "StorageBucket default/rest"]),
    ],
)
def test_what_is_on_record_is_shown_of_what_is_selected(
    fleet: Workspace, arguments: Sequence[str], subjects: Sequence[str]
) -> None:
    done = fleet.run(*arguments)
    everything = ("SQLDatabase other/orders", "SQLInstance default/shop", "StorageBucket default/logs")

    assert done.returncode == 0, done.stderr
    assert [one for one in (*everything, "StorageBucket default/rest") if one in done.stdout] == subjects


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("-l", "team=web"), "SQLInstance/shop\nStorageBucket/logs\n"),
        (("-l", "team in (web,ops), team != data"), "SQLInstance/shop\nStorageBucket/logs\n"),
        (("SQLInstance,StorageBucket", "-l", "!team"), ""),
        (("storagebucket", "--field-selector", "spec.location!=EU"), "StorageBucket/rest\n"),
        (("-A", "--field-selector", "namespace=other"), "SQLDatabase/orders\n"),
        (("--field-selector", "kind=sql*,state=ready,reason=uptodate"), "SQLInstance/shop\n"),
        (("SQLInstance,StorageBucket", "--sort-by", ".spec.location"), _BY_LOCATION),
    ],
)
def test_get_lists_what_is_selected(fleet: Workspace, arguments: Sequence[str], printed: str) -> None:
    done = fleet.run("get", *arguments, "-o", "name")

    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("jsonpath={.spec.location}", "EU\n"),
        ('jsonpath={.status.conditions[?(@.type=="Ready")].status}', "True\n"),
        ('jsonpath={.metadata.name}{"\\t"}{.metadata.labels}{"\\n"}', 'logs\t{"team":"web"}\n'),
        ("custom-columns=NAME:.metadata.name,ZONE:.spec.zone", "NAME   ZONE\nlogs   <none>\n"),
        ("name", "StorageBucket/logs\n"),
    ],
)
def test_get_prints_chosen_fields(fleet: Workspace, form: str, printed: str) -> None:
    assert fleet.run("get", "StorageBucket/logs", "-o", form).stdout == printed


def test_a_template_of_several_is_filled_in_with_the_list(fleet: Workspace) -> None:
    template = 'jsonpath={range .items[*]}{.kind}{" "}{.metadata.name}{"\\n"}{end}'

    assert fleet.run("get", "StorageBucket", "-o", template).stdout == "StorageBucket logs\nStorageBucket rest\n"


def test_plan_and_reconcile_take_kinds_and_labels(fleet: Workspace) -> None:
    assert fleet.run("plan", "StorageBucket", "-q").stdout == "unchanged 2\n"
    assert fleet.run("plan", "-l", "team=web", "-q").stdout == "unchanged 2\n"
    assert fleet.run("reconcile", "SQLInstance,StorageBucket", "-q").stdout == "unchanged 3\n"
    assert fleet.run("reconcile", "--field-selector", "name=shop", "-q").stdout == "unchanged 1\n"


def test_a_field_that_no_kind_has_selects_nothing_and_not_everything(fleet: Workspace) -> None:
    for command in (("get",), ("plan",), ("delete", "-y"), ("describe",)):
        done = fleet.run(*command, "--field-selector", "spec.locaton!=EU")

        assert (done.stdout, done.returncode) == ("", 1)
        assert "character 1: no kind here has a field spec.locaton; did you mean spec.location" in done.stderr
    found = fleet.run("import", "StorageBucket", "--project", "some-project", "--filter", "spec.locaton=EU")
    assert "no kind here has a field spec.locaton" in found.stderr
    assert "none of these 3 resources has the field" in fleet.run("get", "--sort-by", ".metadata.nam").stderr


def _error(done: "subprocess.CompletedProcess[str]") -> str:
    assert (done.stdout, done.returncode) == ("", 1)
    return done.stderr


def test_a_deletion_by_kind_or_labels_is_confirmed_and_never_means_everything(fleet: Workspace) -> None:
    assert "has to be confirmed: --dry-run shows" in _error(fleet.run("delete", "StorageBucket"))
    assert "has to be confirmed" in _error(fleet.run("delete", "-l", "team=data"))
    assert "nothing that is declared here is selected" in _error(fleet.run("delete", "-l", "team=none", "-y"))
    assert "nothing that is declared here is selected" in _error(fleet.run("delete", "SQLUser", "-y"))
    assert "nothing that is declared here is selected" in _error(fleet.run("plan", "SQLUser"))
    assert "name no file beside them" in _error(fleet.run("delete", "-f", "manifest.yaml", "-l", "team=web", "-y"))
    assert fleet.run("delete", "-l", "team=none", "-y", "--ignore-not-found").returncode == 0

    assert fleet.run("delete", "-l", "team=data", "--dry-run", "-q").stdout == "deleted 1 (dry run)\n"
    assert fleet.run("get", "-o", "name").stdout == "SQLInstance/shop\nStorageBucket/logs\nStorageBucket/rest\n"


def test_only_what_is_selected_is_deleted(workspace: Workspace) -> None:
    workspace.write(FLEET)
    workspace.run("apply", "-q", "-f", "manifest.yaml")

    assert workspace.run("delete", "StorageBucket", "-l", "team=data", "-y", "-q").stdout == "deleted 1\n"
    assert workspace.run("get", "StorageBucket", "-o", "name").stdout == "StorageBucket/logs\n"


def test_the_surroundings_of_a_resource_go_as_far_as_is_asked(fleet: Workspace) -> None:
    assert fleet.run("graph", "SQLInstance/shop", "--depth", "0").stdout == "SQLInstance default/shop ready\n"
    assert fleet.run("graph", "SQLInstance/shop", "--depth", "1").stdout == (
        "SQLInstance default/shop ready\n└── SQLDatabase other/orders ready  ← spec.instanceRef\n"
    )
    assert "name it by KIND/NAME" in fleet.run("graph", "SQLInstance", "--depth", "1").stderr


def test_a_fleet_is_drawn_by_kind_and_namespace(fleet: Workspace) -> None:
    assert fleet.run("graph", "-A", "--most", "3").stdout == _DRAWN


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("setpoint get StorageB", ["StorageBucket", "StorageBucket/logs", "StorageBucket/rest"]),
        ("setpoint get ", ["SQLInstance", "StorageBucket"]),
        ("setpoint delete StorageBucket/l", ["StorageBucket/logs"]),
        ("setpoint reconcile SQLInstance,StorageB", ["SQLInstance,StorageBucket"]),
        ("setpoint get -n o", ["other"]),
        ("setpoint get --field-selector state=fai", ["state=failed"]),
        ("setpoint get --field-selector state=ready,na", ["state=ready,name=", "state=ready,namespace="]),
        ("setpoint get --field-selector namespace=o", ["namespace=other"]),
        ("setpoint get SQLInstance --field-selector spec.set", ["spec.settings."]),
        (
            "setpoint get SQLInstance --field-selector spec.settings.ti",
            ["spec.settings.tier=", "spec.settings.timeZone="],
        ),
        ("setpoint get StorageBucket --sort-by .spec.loc", [".spec.location"]),
        ("setpoint kinds SQLInstance.spec.settings.loca", [_PLACE, f"{_PLACE}."]),
        ("setpoint history SQLInstance/s", ["SQLInstance/shop"]),
        ("setpoint import SQLI", ["SQLInstance"]),
        ("setpoint get -o custom", ["custom-columns="]),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_what_is_there(fleet: Workspace, words: str, completed: list[str], shell: str) -> None:
    *before, last = words.split(" ")
    at = last if shell == "fish" else str(len(before))
    line = words if shell != "fish" else " ".join(before)
    variables = {"COMP_LINE": words} if shell == "bash" else {"COMP_WORDS": line, "COMP_CWORD": at}
    done = fleet.run(_SETPOINT_COMPLETE=f"{shell}_complete", **variables)

    assert done.stderr == ""
    assert _values(done.stdout, shell) == completed


def _values(printed: str, shell: str) -> list[str]:
    lines = printed.splitlines()
    if shell == "zsh":
        return lines[1::3]
    return [line.partition(",")[2] for line in lines]


def test_completion_says_nothing_where_the_store_cannot_be_read(workspace: Workspace) -> None:
    (workspace.folder / "broken.db").write_text("not a store")
    done = workspace.run(
        _SETPOINT_COMPLETE="bash_complete",
        COMP_LINE="setpoint --store sqlite:///broken.db get -n d",
    )

    assert (done.stdout.strip(), done.stderr) == ("", "")
