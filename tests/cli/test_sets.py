"""Sets by the command line: `apply --set --prune`, `plan`, `get sets`, and a process that follows a repository."""

import asyncio
import signal
from pathlib import Path

import pytest

from soak.commits import CommitPlan, run_commits
from tests.cli.workspace import Workspace, bucket, database


def _files(workspace: Workspace, **manifests: str) -> None:
    folder = workspace.folder / "world"
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*"):
        file.unlink()
    for name, manifest in manifests.items():
        (folder / f"{name}.yaml").write_text(manifest)


def _apply(workspace: Workspace, *options: str) -> tuple[int, str]:
    done = workspace.run("apply", "-f", "world", *options)
    return done.returncode, done.stdout + done.stderr


def _buckets(workspace: Workspace) -> set[str]:
    return workspace.in_cloud(lambda cloud: set(cloud.storage.state.buckets))


def test_what_left_the_set_is_planned_and_then_pruned(workspace: Workspace) -> None:
    _files(workspace, a=bucket("aa-1"), b=bucket("bb-1"))
    assert _apply(workspace, "--set", "apps", "--prune")[0] == 0
    _files(workspace, a=bucket("aa-1"))

    planned = workspace.run("plan", "-f", "world", "--set", "apps", "--prune")
    assert planned.returncode == 2
    assert "StorageBucket default/bb-1\npruned: projects/some-project/buckets/bb-1" in planned.stdout
    assert _buckets(workspace) == {"aa-1", "bb-1"}

    code, printed = _apply(workspace, "--set", "apps")
    assert (code, _buckets(workspace)) == (0, {"aa-1", "bb-1"})
    assert "left as they are without --prune: StorageBucket default/bb-1" in printed

    assert _apply(workspace, "--set", "apps", "--prune")[0] == 0
    assert _buckets(workspace) == {"aa-1"}


def test_a_prune_keeps_what_is_protected(workspace: Workspace) -> None:
    kept = bucket("kept-1").replace("annotations: {", 'annotations: {setpoint.dev/prevent-prune: "true", ')
    left = bucket("left-1").replace("annotations: {", "annotations: {cnrm.cloud.google.com/deletion-policy: abandon, ")
    _files(workspace, a=bucket("aa-1"), b=kept, c=left)
    assert _apply(workspace, "--set", "apps")[0] == 0
    _files(workspace, a=bucket("aa-1"))

    code, printed = _apply(workspace, "--set", "apps", "--prune")

    assert (code, _buckets(workspace)) == (0, {"aa-1", "kept-1", "left-1"})
    assert "StorageBucket default/kept-1 is not among the manifests, and is kept: setpoint.dev/prevent-prune" in printed
    assert "StorageBucket default/left-1 abandoned" in printed
    assert "left-1" not in workspace.run("get").stdout


def test_labels_prune_what_has_them_and_belongs_to_no_set(workspace: Workspace) -> None:
    def labelled(name: str, app: str = "web") -> str:
        return bucket(name).replace("metadata:", f"metadata:\n  labels: {{app: {app}}}")

    _files(workspace, s=labelled("set-1"))
    assert _apply(workspace, "--set", "apps")[0] == 0
    _files(workspace, a=labelled("aa-1"), b=labelled("bb-1"), c=labelled("cc-1", "other"))
    assert _apply(workspace)[0] == 0
    _files(workspace, a=labelled("aa-1"), d=labelled("dd-1", "other"))

    code, printed = _apply(workspace, "--prune", "-l", "app=web")

    assert (code, _buckets(workspace)) == (0, {"aa-1", "cc-1", "set-1"})
    assert "StorageBucket default/set-1 is not among the manifests, and is kept: it belongs to the set apps" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prune",), "name a set with --set NAME, or labels with -l KEY=VALUE"),
        (("--prune", "--set", "a", "-l", "a=b"), "--set a and -l say different things of what is pruned"),
        (("--set", ""), "a set cannot be called ''"),
        (("-l", "a=b"), "-l says what is pruned: write it with --prune"),
        (("--prune", "-l", "a in (b)"), "is no label: write key=value"),
        (("--set", "no name"), "a set cannot be called 'no name'"),
        (("--prune", "-l", "app=web"), "no manifest has the labels app=web: nothing is pruned for that"),
        (("--prune", "-l", "app=web", "--allow-empty"), "no manifest has the labels app=web"),
    ],
)
def test_options_that_say_nothing_together_are_refused(
    workspace: Workspace, options: tuple[str, ...], message: str
) -> None:
    _files(workspace, a=bucket("aa-1"))

    code, printed = _apply(workspace, *options)

    assert (code, _buckets(workspace)) == (1, set())
    assert message in printed


@pytest.mark.parametrize("options", [("-w",), ("-o", "name"), ("-l", "a=b"), ("--sort-by", ".name")])
def test_sets_are_all_shown(workspace: Workspace, options: tuple[str, ...]) -> None:
    done = workspace.run("get", "sets", *options)

    assert (done.stdout, done.returncode) == ("", 1)
    assert "sets are shown with -o table, wide, yaml or json, and all of them" in done.stderr


def test_a_cluster_keeps_no_sets(workspace: Workspace) -> None:
    _files(workspace, a=bucket("aa-1"))

    for command in (("apply", "--set", "a", "-f", "world"), ("run", "-f", "world")):
        done = workspace.run("--store", "kubernetes", *command)
        assert done.returncode == 1
        assert "in a cluster use `kubectl apply --prune --applyset`, Argo CD or Flux" in done.stderr


def test_a_watched_folder_is_declared_and_pruned_and_shows_where_it_came_from(workspace: Workspace) -> None:
    workspace.make_instance("main")
    _files(workspace, a=bucket("aa-1"), b=database("orders", "{external: main}"))
    daemon = workspace.daemon("-f", "world", "--poll", "50ms", "--audit", "audit.jsonl")
    daemon.until(lambda: _buckets(workspace) == {"aa-1"})
    # Another set is declared through the process meanwhile.
    workspace.write(bucket("by-hand"))
    applied = workspace.run("apply", "--set", "hand", "--prune", "-f", "manifest.yaml")
    assert (applied.returncode, applied.stdout) == (0, "StorageBucket default/by-hand created\ncreated 1\n")
    assert workspace.run("apply", "--set", "world", "-f", "manifest.yaml", "--prune").returncode == 1

    _files(workspace, c=bucket("cc-1"), b=database("orders", "{external: main}"))
    daemon.until(lambda: _buckets(workspace) == {"cc-1", "by-hand"})

    wide, described = workspace.run("get", "-o", "wide").stdout, workspace.run("describe", "StorageBucket/cc-1").stdout
    assert "c.yaml" in wide
    assert "world" in described
    assert "declared at sha256:" in workspace.run("explain", "StorageBucket/cc-1").stdout
    assert "it left the set world" in workspace.run("events").stdout
    assert ':c.yaml"' in (workspace.folder / "audit.jsonl").read_text()
    # What was pruned says why, in its history and in the audit log.
    assert "delete; pruned: it left the set world at sha256:" in workspace.run("history", "StorageBucket/aa-1").stdout
    assert '"why":"pruned: it left the set world at sha256:' in (workspace.folder / "audit.jsonl").read_text()
    (workspace.folder / "world").rename(workspace.folder / "gone")
    daemon.until(lambda: workspace.run("get", "sets").returncode == 1)
    assert _buckets(workspace) == {"cc-1", "by-hand"}
    daemon.send(signal.SIGTERM)
    assert daemon.end() == 0


def test_options_of_sets_need_a_source(workspace: Workspace) -> None:
    done = workspace.run("run", "--set", "apps")

    assert (done.returncode, done.stderr) == (1, "error: --set is for the sets of -f and --git\n")


def test_the_world_follows_the_commits_of_a_repository_through_kills(tmp_path: Path) -> None:
    said: list[str] = []
    plan = CommitPlan(resources=12, commits=5, seed=3, bad=0.4, kills=0.4)

    outcome = asyncio.run(run_commits(plan, tmp_path, said.append))

    assert outcome.wrong == []
    assert outcome.counts == {"good": 4, "bad": 1, "killed": 2}
