"""The programs of an API server are taken from the environment, the PATH or the cache, and built only when missing."""

from pathlib import Path

from tests.cluster.assets import Assets, Missing, find
from tests.cluster.fake_go import BAD_BUILD, GOOD_BUILD, write_go
from tests.cluster.progress import Progress

SYSTEM = "/usr/bin:/bin"


def _programs(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def _find(tmp_path: Path, **environment: str) -> Assets | Missing:
    return find({"XDG_CACHE_HOME": str(tmp_path / "cache"), **environment}, Progress(lambda line: None))


def test_the_folder_that_the_environment_names_comes_first(tmp_path: Path) -> None:
    given = _programs(tmp_path / "given", "kube-apiserver", "etcd", "kubectl")
    path = _programs(tmp_path / "path", "kube-apiserver", "etcd", "kube-controller-manager")

    assert _find(tmp_path, KUBEBUILDER_ASSETS=str(given), PATH=str(path)) == Assets(
        kube_apiserver=given / "kube-apiserver",
        etcd=given / "etcd",
        kubectl=given / "kubectl",
        kube_controller_manager=None,
    )


def test_a_given_folder_that_lacks_a_program_is_reported(tmp_path: Path) -> None:
    given = _programs(tmp_path / "given", "kube-apiserver")
    path = _programs(tmp_path / "path", "kube-apiserver", "etcd")

    assert _find(tmp_path, KUBEBUILDER_ASSETS=str(given), PATH=str(path)) == Missing(
        f"KUBEBUILDER_ASSETS is {given}, which lacks kube-apiserver or etcd"
    )


def test_the_path_comes_next(tmp_path: Path) -> None:
    path = _programs(tmp_path / "path", "kube-apiserver", "etcd", "go")

    assert _find(tmp_path, PATH=str(path)) == Assets(path / "kube-apiserver", path / "etcd", None, None)


def test_missing_programs_are_built_once_and_then_found_without_go(tmp_path: Path) -> None:
    go = write_go(tmp_path / "go", GOOD_BUILD)
    built = _find(tmp_path, PATH=f"{go.parent}:{SYSTEM}")
    again = _find(tmp_path, PATH=str(tmp_path))

    assert isinstance(built, Assets)
    assert built.kube_controller_manager is not None
    assert built.etcd.is_relative_to(tmp_path / "cache" / "setpoint" / "kubernetes")
    assert again == built


def test_without_go_the_reason_says_what_to_do(tmp_path: Path) -> None:
    assert _find(tmp_path, PATH=str(tmp_path)) == Missing(
        "there are no kube-apiserver and etcd, and no Go to build them: install Go and they are built, "
        "put kube-apiserver and etcd on the PATH, or set KUBEBUILDER_ASSETS to a folder that has them"
    )


def test_a_broken_build_is_the_reason(tmp_path: Path) -> None:
    go = write_go(tmp_path / "go", BAD_BUILD)
    missing = _find(tmp_path, PATH=f"{go.parent}:{SYSTEM}")

    assert isinstance(missing, Missing)
    assert missing.reason.endswith("server.go:1:2: undefined: everything")
