"""The programs of a real API server: given by the environment, installed, or built once and cached.

`python -m tests.cluster.assets` finds them, building them if need be, and prints where they are.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import click

from tests.cluster.go_build import Builder, BuildFailed
from tests.cluster.progress import Progress
from tests.go_programs import cache_folder

KUBERNETES: Final = "1.36.3"
_GIVEN: Final = "KUBEBUILDER_ASSETS"
_HOW_TO_GET_THEM: Final = (
    f"install Go and they are built, put kube-apiserver and etcd on the PATH, or set {_GIVEN} to a folder that has them"
)


@dataclass(frozen=True, slots=True)
class Assets:
    """The programs. Assets of envtest have no controller manager, and the PATH may have no kubectl."""

    kube_apiserver: Path
    etcd: Path
    kubectl: Path | None
    kube_controller_manager: Path | None


@dataclass(frozen=True, slots=True)
class Missing:
    """The reason why there are none."""

    reason: str


Found: TypeAlias = Assets | Missing


def find(environment: Mapping[str, str], progress: Progress) -> Found:
    """The programs of the folder in the environment, else of its PATH, else of the cache, which is built if need be."""
    if given := environment.get(_GIVEN):
        return in_folder(Path(given)) or Missing(f"{_GIVEN} is {given}, which lacks kube-apiserver or etcd")
    return on_path(environment.get("PATH", "")) or cached_or_built(environment, progress)


def are_there(environment: Mapping[str, str]) -> bool:
    """Whether the programs are there without a build."""
    if given := environment.get(_GIVEN):
        return in_folder(Path(given)) is not None
    builder = Builder(KUBERNETES, cache_folder(environment) / "kubernetes", environment, Progress(lambda _: None))
    return (on_path(environment.get("PATH", "")) or in_folder(builder.target)) is not None


def in_folder(folder: Path) -> Assets | None:
    """The programs in `folder`; None without kube-apiserver or etcd."""
    return on_path(str(folder))


def on_path(path: str) -> Assets | None:
    """The programs in the folders of `path`; None without kube-apiserver or etcd."""
    kube_apiserver, etcd, kubectl, manager = (
        Path(found).absolute() if (found := shutil.which(name, path=path)) else None
        for name in ("kube-apiserver", "etcd", "kubectl", "kube-controller-manager")
    )
    if kube_apiserver is None or etcd is None:
        return None
    return Assets(kube_apiserver, etcd, kubectl, manager)


def cached_or_built(environment: Mapping[str, str], progress: Progress) -> Found:
    """The programs from the cache, built first where they are missing."""
    go = shutil.which("go", path=environment.get("PATH", ""))
    builder = Builder(KUBERNETES, cache_folder(environment) / "kubernetes", environment, progress)
    kept = in_folder(builder.target)
    if kept is not None:
        return kept
    if go is None:
        return Missing(f"there are no kube-apiserver and etcd, and no Go to build them: {_HOW_TO_GET_THEM}")
    try:
        built = in_folder(builder.build(go))
    except BuildFailed as failure:
        return Missing(str(failure))
    return built or Missing(f"{builder.target} is not complete: remove it, and it is built again")


def main() -> int:
    """Prints the folder of the programs; 1 and the reason when there are none."""
    try:
        found = find(os.environ, Progress(lambda line: click.echo(line, err=True)))
    except KeyboardInterrupt:
        return 130
    match found:
        case Missing(reason):
            click.echo(reason, err=True)
            return 1
        case Assets():
            click.echo(found.kube_apiserver.parent)
            return 0


if __name__ == "__main__":
    sys.exit(main())
