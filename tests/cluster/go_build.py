"""Kubernetes and etcd, built from their published Go modules.

Kubernetes' own go.mod replaces the modules of its staging area by folders that are published elsewhere, so it can only
be built by a module that replaces them by what was published together with it.
"""

import fcntl
import json
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from tests.cluster.children import Child
from tests.cluster.progress import Progress

_KUBERNETES: Final = "k8s.io/kubernetes"
_ETCD: Final = "go.etcd.io/etcd/server/v3"
_PROGRAMS: Final = (
    *(f"{_KUBERNETES}/cmd/{name}" for name in ("kube-apiserver", "kubectl", "kube-controller-manager")),
    _ETCD,
)
_VERSION_STAMP: Final = "k8s.io/component-base/version"
_STAGING: Final = "./staging/"
_REASON_LINES: Final = 12
# What says what failed, among the names of the packages that were compiled meanwhile.
_PACKAGE: Final = re.compile(r"[\w.~-]+(/[\w.~-]+)*")


class BuildFailed(Exception):
    """What failed, and the last lines that Go said about it."""


class Builder:
    """Builds one version for this machine, below the folder `cache`."""

    def __init__(self, version: str, cache: Path, environment: Mapping[str, str], progress: Progress) -> None:
        name = f"{version}-{platform.system().lower()}-{platform.machine().lower()}"
        self.target = cache / name
        self._workshop = cache / f"{name}.building"
        self._lock = cache / f"{name}.lock"
        self._version = version
        self._progress = progress
        self._environment = {
            **environment,
            "CGO_ENABLED": "0",
            "GOCACHE": str(self._workshop / "go-cache"),
            "GOFLAGS": "-mod=mod -trimpath -buildvcs=false",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }

    def build(self, go: str) -> Path:
        """The folder with the programs. It appears when all of it is there; what a stopped build did is not lost."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._alone():
            if not self.target.exists():
                self._workshop.mkdir(exist_ok=True)
                self._progress.tell(
                    f"Building Kubernetes {self._version} and etcd for the tests, once: about 11 minutes on one core"
                )
                self._write_module(go)
                self._compile(go)
                (self._workshop / "bin" / "server").rename(self._workshop / "bin" / "etcd")
                (self._workshop / "bin").rename(self.target)
                self._progress.tell(f"Built Kubernetes {self._version} and etcd: {self.target}")
            shutil.rmtree(self._workshop, ignore_errors=True)
        return self.target

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock.open("w") as lock:
            self._progress.wait(
                lambda: _is_locked_by_us(lock), lambda: f"Waiting for another process that builds {self.target.name}"
            )
            yield

    def _write_module(self, go: str) -> None:
        downloaded = self._ask(go, "mod", "download", "-json", f"{_KUBERNETES}@v{self._version}")
        theirs = self._ask(go, "mod", "edit", "-json", downloaded["GoMod"])
        (self._workshop / "go.mod").write_text(module_file(theirs, self._version), encoding="utf-8")

    def _compile(self, go: str) -> None:
        shutil.rmtree(self._workshop / "bin", ignore_errors=True)
        (self._workshop / "bin").mkdir()
        self._run(go, "build", "-v", "-o", "bin/", "-ldflags", link_flags(self._version), *_PROGRAMS)

    def _ask(self, *command: str) -> Any:
        said = self._run(*command)
        answer, _ = json.JSONDecoder().raw_decode(said, said.index("{"))
        return answer

    def _run(self, *command: str) -> str:
        log = self._workshop / "go.log"
        log.unlink(missing_ok=True)
        nice = [found] if (found := shutil.which("nice")) else []
        child = Child((*nice, *command), log, self._workshop, self._environment)
        child.start()
        try:
            self._progress.wait(lambda: child.code is not None, lambda: f"Building Kubernetes: {_state(log)}")
        finally:
            child.kill()
        said = log.read_text(encoding="utf-8", errors="replace")
        if child.code != 0:
            raise BuildFailed(f"Kubernetes {self._version} cannot be built: go {command[1]} said: {_last_words(said)}")
        return said


def module_file(theirs: Mapping[str, Any], version: str) -> str:
    """The go.mod of a module that can build `version`, from Kubernetes' own, as `go mod edit -json` tells it."""
    published = f"v0.{version.removeprefix('1.')}"
    return "\n".join(
        [
            "module setpoint.dev/test-cluster",
            f"go {theirs['Go']}",
            f"require {_KUBERNETES} v{version}",
            f"require {_ETCD} {required_version(theirs, _ETCD)}",
            *(f"replace {name} => {name} {published}" for name in staging_modules(theirs)),
            "",
        ]
    )


def staging_modules(theirs: Mapping[str, Any]) -> Sequence[str]:
    """The modules that Kubernetes keeps in its own repository and publishes one by one."""
    replaced = theirs.get("Replace") or ()
    return [entry["Old"]["Path"] for entry in replaced if entry["New"]["Path"].startswith(_STAGING)]


def required_version(theirs: Mapping[str, Any], module: str) -> str:
    """The version of `module` that Kubernetes is released with."""
    for entry in theirs.get("Require") or ():
        if entry["Path"] == module:
            return str(entry["Version"])
    raise BuildFailed(f"Kubernetes' go.mod does not name {module}: the way it is built has to be looked at anew")


def link_flags(version: str) -> str:
    """What makes the programs say which version they are."""
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X {_VERSION_STAMP}.{name}={value}" for name, value in stamps.items())])


def _is_locked_by_us(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _state(log: Path) -> str:
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()
    compiled = [line for line in said if _PACKAGE.fullmatch(line)]
    if not compiled:
        return said[-1] if said else "nothing compiled yet"
    return f"{len(compiled)} packages compiled, the last was {compiled[-1]}"


def _last_words(text: str) -> str:
    telling = [line for line in text.splitlines() if line.strip() and not _PACKAGE.fullmatch(line)]
    return "\n".join(telling[-_REASON_LINES:]) or "it said nothing"
