"""The controller-runtime controller: built from its source here and from pinned modules."""

from pathlib import Path
from typing import Final

from tests.go_programs import GoProgram

SOURCE: Final = Path(__file__).with_name("controller_runtime")
CONTROLLER: Final = GoProgram("the controller-runtime controller", "controller-runtime", SOURCE)


def controller_runtime_version(go_mod: str) -> str:
    """The version that a go.mod requires."""
    words = [line.split() for line in go_mod.splitlines()]
    return next(line[1] for line in words if line[:1] == ["sigs.k8s.io/controller-runtime"])
