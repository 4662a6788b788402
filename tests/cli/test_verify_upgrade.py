"""`setpoint verify-upgrade`, as a user types it: two interpreters, one world."""

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from setpoint import __version__
from tests.cli.fleets import CUT
from tests.cli.test_moving import writes
from tests.cli.versions import other_version
from tests.cli.workspace import Workspace, bucket

SPEC, KIND = "kinds/gcp/storage_bucket/spec.py", "kinds/gcp/storage_bucket/kind.py"
CHANGED = (SPEC, ("Default(STORAGE_CLASS)", 'Default("NEARLINE")'))
RAISED = (KIND, ("revision: int = 1", "revision: int = 2"))
OTHERWISE = "body = {**patch_body(intent, wanted, write, view), 'website': None}"
VERIFY = ("verify-upgrade", "--world", "world.gz", "--environments", "versions")


@pytest.fixture
def world(workspace: Workspace) -> Workspace:
    """A workspace with a recorded world of two buckets, one of which has drifted. The cloud is out of reach."""
    workspace.apply(bucket("logs"), bucket("more"))
    workspace.in_cloud(lambda cloud: cloud.edit("/storage/v1/b/more", {"versioning": {"enabled": True}}))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())
    workspace.run("record", "--to", "world.gz")
    workspace.environment |= CUT
    return workspace


def made(workspace: Workspace, version: str, *edits: tuple[str, tuple[str, str]]) -> Path:
    return other_version(workspace.folder / "versions", version, dict(edits))


def test_a_version_that_changed_nothing_may_be_rolled_out(world: Workspace) -> None:
    made(world, "0.2.0")

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "VERDICT   RESOURCES",
        "same      2",
        f"this ({__version__}) → 0.2.0: nothing is written that would not be written anyway",
    ]


def test_a_terminal_sees_that_something_goes_on(world: Workspace) -> None:
    terminal = world.terminal(*VERIFY, "--baseline", "this")

    assert terminal.end() == 0
    assert "two versions plan the same world" in terminal.text
    assert "same      2" in terminal.lines


def test_a_changed_default_is_found_whether_or_not_its_revision_was_raised(world: Workspace) -> None:
    made(world, "0.2.0", CHANGED)
    made(world, "0.3.0", CHANGED, RAISED)

    hidden = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0", "-o", "json")
    told = world.run(*VERIFY, "--baseline", "this", "--candidate", "versions/0.3.0")

    assert (hidden.returncode, told.returncode) == (2, 2)
    report = json.loads(hidden.stdout)
    assert (report["baseline"], report["candidate"], report["verdict"]) == (
        f"this ({__version__})",
        "0.2.0",
        "new writes",
    )
    assert [(one["name"], one["verdict"], one["fields"], one["candidate"]) for one in report["resources"]] == [
        ("logs", "new writes", ["spec.storageClass"], "masked"),
        ("more", "different writes", ["spec.storageClass"], "writes"),
    ]
    assert told.stdout.splitlines() == [
        "StorageBucket default/logs new writes: spec.storageClass",
        "StorageBucket default/more different writes: spec.storageClass",
        "VERDICT            RESOURCES",
        "different writes   1",
        "new writes         1",
        f"this ({__version__}) → versions/0.3.0 (0.3.0): something is written that would not be written otherwise",
    ]


def test_the_same_plan_that_is_carried_out_otherwise_is_found(world: Workspace) -> None:
    made(world, "0.2.0", (KIND, ("body = patch_body(intent, wanted, write, view)", OTHERWISE)))

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert done.returncode == 2
    assert done.stdout.splitlines()[0] == (
        "StorageBucket default/more different writes: PATCH /storage/v1/b/more: website"
    )


def test_the_other_way_round_fewer_fields_are_written(world: Workspace) -> None:
    made(world, "0.0.9", CHANGED, RAISED)

    done = world.run(*VERIFY, "--baseline", "0.0.9")

    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == [
        "StorageBucket default/logs fewer writes: spec.storageClass",
        "StorageBucket default/more fewer writes: spec.storageClass",
    ]


def test_a_revision_that_was_raised_for_nothing_is_a_close_look(world: Workspace) -> None:
    made(world, "0.2.0", RAISED)

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("written anyway; 1 are looked at closely once")


def test_a_version_that_asks_something_else_is_broken_and_nothing_is_guessed(world: Workspace) -> None:
    made(world, "0.2.0", ("clients/google/calls.py", ('STORAGE = "/storage/v1"', 'STORAGE = "/storage/v2"')))

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert done.returncode == 1
    lines = done.stdout.splitlines()
    told = "GET /storage/v2/b/logs (google) was not asked when this world was recorded: record it again"
    assert lines[0] == f"StorageBucket default/logs broken: {told}"
    assert lines[-1].endswith("do not roll this out")


def test_a_kind_without_its_cookie_is_compared_with_itself(world: Workspace) -> None:
    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "this,StorageBucket=stateless")

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "same      2")


def test_ci_systems_and_people_get_reports(world: Workspace) -> None:
    made(world, "0.2.0", CHANGED)
    reports = ("--junit", "report.xml", "--markdown", "report.md")

    world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0", *reports)

    (suite,) = Xml.parse(world.folder / "report.xml").getroot()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("StorageBucket", "2", "2")
    head = (world.folder / "report.md").read_text(encoding="utf-8").splitlines()[0]
    assert head == f"# this ({__version__}) → 0.2.0: new writes"


def test_without_a_world_one_is_recorded_and_thrown_away(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    done = workspace.run("verify-upgrade", "--baseline", "this")

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "same      1")
    assert writes(workspace) == []
    assert sorted(path.name for path in workspace.folder.iterdir()) == [".setpoint", "manifest.yaml"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--baseline", "9.9"), "error: 9.9: neither a virtual environment nor a version in versions: add --install"),
        (("--baseline", "no/env"), "error: no/env: neither a virtual environment nor a version: name one of the two"),
        (
            ("--baseline", "this,Bucket=stateless"),
            "error: this,Bucket=stateless: it could not plan this world: error: no",
        ),
        (
            ("--baseline", "this,StorageBucket=7"),
            "is not handled as '7' in any way that is known here: there is stateful",
        ),
        (("--baseline", "this,StorageBucket"), "--as 'StorageBucket' says too little"),
        (("--baseline", "this", "--world", "none.gz"), "error: none.gz is not there"),
        (("--baseline", "this", "--junit", "no/such/file"), "error: no/such/file: No such file or directory"),
    ],
)
def test_what_cannot_be_compared_is_said(world: Workspace, arguments: tuple[str, ...], told: str) -> None:
    done = world.run(*VERIFY, *arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr.replace("\n", " ")


def test_an_environment_without_a_version_that_can_do_this_is_named(world: Workspace) -> None:
    made(world, "0.0.1", ("cli/main.py", ('"--world", metavar', '"--planet", metavar')))

    done = world.run(*VERIFY, "--baseline", "0.0.1")

    assert done.returncode == 1
    assert done.stderr.startswith("error: 0.0.1: it could not plan this world: ")
