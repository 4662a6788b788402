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
# A line that names a compiled package, as opposed to an error.
_PACKAGE: Final = re.compile(r"[\w.~-]+(/[\w.~-]+)*")


class BuildFailed(Exception):
    """The step that failed, and the last lines of its output."""


class Builder:
    """Builds one version for this machine, below the folder `cache`."""

    def __init__(self, version: str, cache: Path, environment: Mapping[str, str], progress: Progress) -> None:
        name = f"{version}-{platform.system().lower()}-{platform.machine().lower()}"
        self.target = cache / name
        self._build_folder = cache / f"{name}.building"
        self._lock = cache / f"{name}.lock"
        self._version = version
        self._progress = progress
        self._environment = {
            **environment,
            "CGO_ENABLED": "0",
            "GOCACHE": str(self._build_folder / "go-cache"),
            "GOFLAGS": "-mod=mod -trimpath -buildvcs=false",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }

    def build(self, go: str) -> Path:
        """The folder with the programs. It appears when it is complete; an interrupted build is resumed."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if not self.target.exists():
                self._build_folder.mkdir(exist_ok=True)
                self._progress.report(
                    f"Building Kubernetes {self._version} and etcd for the tests, once: about 11 minutes on one core"
                )
                self._write_module(go)
                self._compile(go)
                (self._build_folder / "bin" / "server").rename(self._build_folder / "bin" / "etcd")
                (self._build_folder / "bin").rename(self.target)
                self._progress.report(f"Built Kubernetes {self._version} and etcd: {self.target}")
            shutil.rmtree(self._build_folder, ignore_errors=True)
        return self.target

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock.open("w") as lock:
            self._progress.wait(
                lambda: _is_locked_by_us(lock), lambda: f"Waiting for another process that builds {self.target.name}"
            )
            yield

    def _write_module(self, go: str) -> None:
        downloaded = self._ask(go, "mod", "download", "-json", f"{_KUBERNETES}@v{self._version}")
        go_mod = self._ask(go, "mod", "edit", "-json", downloaded["GoMod"])
        (self._build_folder / "go.mod").write_text(module_file(go_mod, self._version), encoding="utf-8")

    def _compile(self, go: str) -> None:
        shutil.rmtree(self._build_folder / "bin", ignore_errors=True)
        (self._build_folder / "bin").mkdir()
        self._run(go, "build", "-v", "-o", "bin/", "-ldflags", link_flags(self._version), *_PROGRAMS)

    def _ask(self, *command: str) -> Any:
        output = self._run(*command)
        answer, _ = json.JSONDecoder().raw_decode(output, output.index("{"))
        return answer

    def _run(self, *command: str) -> str:
        log = self._build_folder / "go.log"
        log.unlink(missing_ok=True)
        nice = [found] if (found := shutil.which("nice")) else []
        child = Child((*nice, *command), log, self._build_folder, self._environment)
        child.start()
        try:
            self._progress.wait(lambda: child.code is not None, lambda: f"Building Kubernetes: {_progress_of(log)}")
        finally:
            child.kill()
        output = log.read_text(encoding="utf-8", errors="replace")
        if child.code != 0:
            raise BuildFailed(
                f"Kubernetes {self._version} cannot be built: go {command[1]} said: {_error_lines(output)}"
            )
        return output


def module_file(go_mod: Mapping[str, Any], version: str) -> str:
    """The go.mod of a module that can build `version`, from Kubernetes' own, as `go mod edit -json` prints it."""
    published = f"v0.{version.removeprefix('1.')}"
    return "\n".join(
        [
            "module setpoint.dev/test-cluster",
            f"go {go_mod['Go']}",
            f"require {_KUBERNETES} v{version}",
            f"require {_ETCD} {required_version(go_mod, _ETCD)}",
            *(f"replace {name} => {name} {published}" for name in staging_modules(go_mod)),
            "",
        ]
    )


def staging_modules(go_mod: Mapping[str, Any]) -> Sequence[str]:
    """The staging modules of Kubernetes, which are published one by one."""
    replaced = go_mod.get("Replace") or ()
    return [entry["Old"]["Path"] for entry in replaced if entry["New"]["Path"].startswith(_STAGING)]


def required_version(go_mod: Mapping[str, Any], module: str) -> str:
    """The version of `module` that Kubernetes is released with."""
    for entry in go_mod.get("Require") or ():
        if entry["Path"] == module:
            return str(entry["Version"])
    raise BuildFailed(f"Kubernetes' go.mod does not name {module}: adapt tests/cluster/go_build.py to it")


def link_flags(version: str) -> str:
    """Linker flags that set the version of the programs."""
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X {_VERSION_STAMP}.{name}={value}" for name, value in stamps.items())])


def _is_locked_by_us(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _progress_of(log: Path) -> str:
    output = log.read_text(encoding="utf-8", errors="replace").splitlines()
    compiled = [line for line in output if _PACKAGE.fullmatch(line)]
    if not compiled:
        return output[-1] if output else "nothing compiled yet"
    return f"{len(compiled)} packages compiled, the last was {compiled[-1]}"


def _error_lines(text: str) -> str:
    errors = [line for line in text.splitlines() if line.strip() and not _PACKAGE.fullmatch(line)]
    return "\n".join(errors[-_REASON_LINES:]) or "no output"
