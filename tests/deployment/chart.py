"""The chart, rendered by the helm that comes with the development packages, or by one on the PATH."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Any, Final

import pytest

from tests.deployment.deploy_files import CHART
from tests.deployment.installed_objects import Key, in_stream

# Labels that Helm adds.
HELMS_OWN: Final = frozenset({"app.kubernetes.io/managed-by", "helm.sh/chart"})


def helm() -> str:
    """The program; without one the test is skipped."""
    found = which("helm", path=str(Path(sys.executable).parent)) or which("helm")
    if found is None:
        pytest.skip("there is no helm: put one on the PATH")
    return found


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs helm."""
    return subprocess.run([helm(), *arguments], capture_output=True, text=True, check=False)


def rendered(*settings: str, release: str = "setpoint", namespace: str = "setpoint-system") -> dict[Key, Any]:
    """The objects of a release, each value set as on a command line; without the labels that Helm adds."""
    return {
        key: without(one, HELMS_OWN)
        for key, one in in_stream(stream(*settings, release=release, namespace=namespace)).items()
    }


def stream(*settings: str, release: str = "setpoint", namespace: str = "setpoint-system") -> str:
    """The same as YAML, with all labels."""
    values = [word for setting in settings for word in ("--set", setting)]
    done = run("template", release, str(CHART), "--namespace", namespace, *values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without(value: Any, names: frozenset[str]) -> Any:
    """The value, without these names anywhere in it."""
    match value:
        case Mapping():
            return {name: without(inner, names) for name, inner in value.items() if name not in names}
        case list():
            return [without(inner, names) for inner in value]
        case _:
            return value
