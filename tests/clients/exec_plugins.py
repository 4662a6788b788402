"""Exec plugins for tests."""

import sys
from pathlib import Path
from typing import Any

from setpoint.clients.kubernetes.kubeconfig import ExecPlugin, InteractiveMode

V1 = "client.authentication.k8s.io/v1"

# Counts its runs, and prints what it is given with the number of the run for `RUN`.
_SCRIPT = """
import pathlib, sys
runs = pathlib.Path(sys.argv[1])
runs.write_text((runs.read_text() if runs.exists() else "") + "x")
print(sys.argv[2].replace("RUN", str(len(runs.read_text()))))
"""


def printing(folder: Path, printed: str, **more: Any) -> ExecPlugin:
    """A plugin that prints `printed`."""
    args = ("-c", _SCRIPT, str(folder / "runs"), printed)
    return ExecPlugin(sys.executable, args, interactive=InteractiveMode.NEVER, **more)


def running(script: str, *arguments: str, **more: Any) -> ExecPlugin:
    """A plugin that runs a Python script."""
    return ExecPlugin(sys.executable, ("-c", script, *arguments), **({"interactive": InteractiveMode.NEVER} | more))


def runs(folder: Path) -> int:
    """How often the plugin of `printing` has run."""
    file = folder / "runs"
    return len(file.read_text(encoding="utf-8")) if file.exists() else 0
