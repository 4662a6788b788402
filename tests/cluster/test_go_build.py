"""Kubernetes is built from its Go modules, completely or not at all, by one process at a time."""

import fcntl
import json
import os
import threading
from pathlib import Path

import pytest

from tests.cluster.fake_go import BAD_BUILD, GO_MOD, GOOD_BUILD, write_go
from tests.cluster.go_build import Builder, BuildFailed, link_flags, module_file, required_version, staging_modules
from tests.cluster.progress import Cancelled, Progress

VERSION = "1.36.3"


class ProgressRecorder:
    """Records the reported progress."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self.progress = Progress(self._record, interval=0.0)

    def _record(self, line: str) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def until(self, word: str) -> str:
        """The first line with `word`, once there is one."""
        with self._changed:
            found = self._changed.wait_for(lambda: [line for line in self.lines if word in line], timeout=240)
        assert found, self.lines
        return str(found[0])


def _builder(cache: Path, recorder: ProgressRecorder) -> Builder:
    return Builder(VERSION, cache, os.environ, recorder.progress)


def test_our_module_takes_what_was_published_in_place_of_the_staging_area() -> None:
    assert module_file(json.loads(GO_MOD), VERSION).splitlines() == [
        "module setpoint.dev/test-cluster",
        "go 1.26.0",
        "require k8s.io/kubernetes v1.36.3",
        "require go.etcd.io/etcd/server/v3 v3.6.8",
        "replace k8s.io/api => k8s.io/api v0.36.3",
        "replace k8s.io/client-go => k8s.io/client-go v0.36.3",
    ]


@pytest.mark.parametrize("go_mod", [{}, {"Replace": None}, {"Replace": []}])
def test_a_module_that_replaces_nothing_has_no_staging_area(go_mod: dict[str, object]) -> None:
    assert staging_modules(go_mod) == []


def test_a_module_that_is_not_named_is_an_error() -> None:
    with pytest.raises(BuildFailed, match=r"Kubernetes' go\.mod does not name example\.com/other"):
        required_version(json.loads(GO_MOD), "example.com/other")


def test_the_version_is_linked_into_the_programs() -> None:
    assert link_flags("1.36.3") == (
        "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3"
        " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
    )


def test_only_the_programs_stay_after_a_build(tmp_path: Path) -> None:
    go = write_go(tmp_path / "go", GOOD_BUILD)
    built = _builder(tmp_path / "cache", ProgressRecorder()).build(str(go))

    assert sorted(file.name for file in built.iterdir()) == [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kubectl",
    ]
    assert sorted(file.name for file in built.parent.iterdir()) == [built.name, f"{built.name}.lock"]


def test_what_is_built_is_not_built_again(tmp_path: Path) -> None:
    built = _builder(tmp_path, ProgressRecorder()).build(str(write_go(tmp_path / "good", GOOD_BUILD)))

    assert _builder(tmp_path, ProgressRecorder()).build(str(write_go(tmp_path / "bad", BAD_BUILD))) == built


def test_a_failed_build_shows_the_output_of_go_and_leaves_no_target(tmp_path: Path) -> None:
    builder = _builder(tmp_path, ProgressRecorder())
    with pytest.raises(BuildFailed) as failure:
        builder.build(str(write_go(tmp_path / "go", BAD_BUILD)))

    assert str(failure.value) == (
        "Kubernetes 1.36.3 cannot be built: go build said: # k8s.io/apiserver/pkg/server\n"
        "server.go:1:2: undefined: everything"
    )
    assert not builder.target.exists()


def test_a_failed_download_shows_why(tmp_path: Path) -> None:
    go = write_go(tmp_path / "go", GOOD_BUILD, download="echo 'go: no such host' >&2; exit 1")

    with pytest.raises(BuildFailed, match=r"Kubernetes 1\.36\.3 cannot be built: go mod said: go: no such host"):
        _builder(tmp_path, ProgressRecorder()).build(str(go))


def test_a_failed_build_is_resumed(tmp_path: Path) -> None:
    keeps = 'mkdir -p "$GOCACHE"; touch "$GOCACHE/compiled"; exit 1'
    with pytest.raises(BuildFailed):
        _builder(tmp_path, ProgressRecorder()).build(str(write_go(tmp_path / "go", keeps)))
    finds = f'test -e "$GOCACHE/compiled" || exit 1\n{GOOD_BUILD}'

    assert _builder(tmp_path, ProgressRecorder()).build(str(write_go(tmp_path / "go", finds))).is_dir()


def test_a_build_reports_progress_and_can_be_cancelled(tmp_path: Path) -> None:
    recorder = ProgressRecorder()
    go = write_go(tmp_path / "go", "echo k8s.io/api/core/v1 >&2; sleep 600")
    raised: list[BaseException] = []

    def build() -> None:
        with pytest.raises(Cancelled) as cancelled:
            _builder(tmp_path, recorder).build(str(go))
        raised.append(cancelled.value)

    building = threading.Thread(target=build)
    building.start()
    line = recorder.until("1 packages compiled")
    recorder.progress.cancel()
    building.join(240)

    assert line.startswith("Building Kubernetes: 1 packages compiled, the last was k8s.io/api/core/v1 (")
    assert len(raised) == 1


def test_a_second_builder_waits_for_the_first(tmp_path: Path) -> None:
    recorder = ProgressRecorder()
    builder = _builder(tmp_path, recorder)
    go = write_go(tmp_path / "go", GOOD_BUILD)
    with (tmp_path / f"{builder.target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=builder.build, args=(str(go),))
        second.start()
        line = recorder.until("Waiting")
        meanwhile = builder.target.exists()
    second.join(240)

    assert line.startswith(f"Waiting for another process that builds {builder.target.name} (")
    assert (meanwhile, builder.target.exists()) == (False, True)
