"""`setpoint verify-upgrade`, as a user types it: two interpreters, one world."""

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from setpoint import __version__
from tests.cli.fleets import CUT
from tests.cli.test_transfer import writes
from tests.cli.versions import other_version
from tests.cli.workspace import Workspace, bucket, user_environment

SPEC, KIND = "kinds/gcp/storage_bucket/spec.py", "kinds/gcp/storage_bucket/kind.py"
CHANGED = (SPEC, ("Default(STORAGE_CLASS)", 'Default("NEARLINE")'))
RAISED = (KIND, ("revision: int = 1", "revision: int = 2"))
OTHERWISE = "body = {**patch_body(intent, wanted, write, effective.live), 'website': None}"
VERIFY = ("verify-upgrade", "--world", "world.gz", "--environments", "versions")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A recorded world of two buckets, one of which has drifted."""
    with Workspace(tmp_path_factory.mktemp("recorded"), user_environment()) as workspace:
        workspace.apply(bucket("logs"), bucket("more"))
        workspace.in_cloud(lambda cloud: cloud.edit("/storage/v1/b/more", {"versioning": {"enabled": True}}))
        workspace.run("record", "--to", "world.gz")
        return (workspace.folder / "world.gz").read_bytes()


@pytest.fixture
def world(workspace: Workspace, recorded: bytes) -> Workspace:
    """A workspace with that recorded world. The cloud is out of reach."""
    (workspace.folder / "world.gz").write_bytes(recorded)
    workspace.environment |= CUT
    return workspace


def make_version(workspace: Workspace, version: str, *edits: tuple[str, tuple[str, str]]) -> Path:
    return other_version(workspace.folder / "versions", version, dict(edits))


def test_a_version_that_changed_nothing_may_be_rolled_out(world: Workspace) -> None:
    make_version(world, "0.2.0")

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "VERDICT   RESOURCES",
        "same      2",
        f"this ({__version__}) → 0.2.0: nothing is written that would not be written anyway",
    ]


def test_a_terminal_shows_a_spinner(world: Workspace) -> None:
    terminal = world.terminal(*VERIFY, "--baseline", "this")

    assert terminal.end() == 0
    assert "two versions plan the same world" in terminal.text
    assert "same      2" in terminal.lines


def test_a_changed_default_is_found_whether_or_not_its_revision_was_raised(world: Workspace) -> None:
    make_version(world, "0.2.0", CHANGED)
    make_version(world, "0.3.0", CHANGED, RAISED)

    hidden = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0", "-o", "json")
    shown = world.run(*VERIFY, "--baseline", "this", "--candidate", "versions/0.3.0")

    assert (hidden.returncode, shown.returncode) == (2, 2)
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
    assert shown.stdout.splitlines() == [
        "StorageBucket default/logs new writes: spec.storageClass",
        "StorageBucket default/more different writes: spec.storageClass",
        "VERDICT            RESOURCES",
        "different writes   1",
        "new writes         1",
        f"this ({__version__}) → versions/0.3.0 (0.3.0): something is written that would not be written otherwise",
    ]


def test_the_same_plan_with_other_requests_is_found(world: Workspace) -> None:
    make_version(world, "0.2.0", (KIND, ("body = patch_body(intent, wanted, write, effective.live)", OTHERWISE)))

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert done.returncode == 2
    assert done.stdout.splitlines()[0] == (
        "StorageBucket default/more different writes: PATCH /storage/v1/b/more: website"
    )


def test_a_candidate_that_writes_fewer_fields_may_be_rolled_out(world: Workspace) -> None:
    make_version(world, "0.0.9", CHANGED, RAISED)

    done = world.run(*VERIFY, "--baseline", "0.0.9")

    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == [
        "StorageBucket default/logs fewer writes: spec.storageClass",
        "StorageBucket default/more fewer writes: spec.storageClass",
    ]


def test_a_raised_revision_without_a_change_is_one_full_comparison(world: Workspace) -> None:
    make_version(world, "0.2.0", RAISED)

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("written anyway; 1 are compared in full once")


def test_a_version_with_requests_that_were_not_recorded_is_broken(world: Workspace) -> None:
    make_version(world, "0.2.0", ("clients/google/calls.py", ('STORAGE = "/storage/v1"', 'STORAGE = "/storage/v2"')))

    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0")

    assert done.returncode == 1
    lines = done.stdout.splitlines()
    message = "GET /storage/v2/b/logs (google) was not asked when this world was recorded: record it again"
    assert lines[0] == f"StorageBucket default/logs broken: {message}"
    assert lines[-1].endswith("do not roll this out")


def test_a_kind_without_its_cookie_is_compared_with_itself(world: Workspace) -> None:
    done = world.run(*VERIFY, "--baseline", "this", "--candidate", "this,StorageBucket=stateless")

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "same      2")


def test_reports_are_written_as_junit_and_markdown(world: Workspace) -> None:
    make_version(world, "0.2.0", CHANGED)
    reports = ("--junit", "report.xml", "--markdown", "report.md")

    world.run(*VERIFY, "--baseline", "this", "--candidate", "0.2.0", *reports)

    (suite,) = Xml.parse(world.folder / "report.xml").getroot()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("StorageBucket", "2", "2")
    head = (world.folder / "report.md").read_text(encoding="utf-8").splitlines()[0]
    assert head == f"# this ({__version__}) → 0.2.0: new writes"


def test_without_a_world_one_is_recorded_and_removed(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"))
    workspace.in_cloud(lambda cloud: cloud.journal.clear())

    done = workspace.run("verify-upgrade", "--baseline", "this")

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "same      1")
    assert writes(workspace) == []
    assert sorted(path.name for path in workspace.folder.iterdir()) == [".setpoint", "manifest.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_an_invalid_side_or_file_is_a_one_line_error(
    world: Workspace, arguments: tuple[str, ...], message: str
) -> None:
    done = world.run(*VERIFY, *arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr.replace("\n", " ")


def test_a_version_that_cannot_plan_a_world_is_named(world: Workspace) -> None:
    make_version(world, "0.0.1", ("cli/definitions/resources.py", ('"--world", metavar', '"--planet", metavar')))

    done = world.run(*VERIFY, "--baseline", "0.0.1")

    assert done.returncode == 1
    assert done.stderr.startswith("error: 0.0.1: it could not plan this world: ")
