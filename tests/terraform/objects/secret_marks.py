"""Secret values for configurations, and whether one of them was printed or logged."""

import base64
import json
from typing import Final

from tests.terraform.command import Project
from tests.terraform.objects.workspace import Workspace

MARKS: Final = tuple(f"hunter2-{number:03}" for number in range(8))
VARIABLE: Final = f"""
variable "marks" {{
  type      = list(string)
  sensitive = true
  default   = {json.dumps(MARKS)}
}}
"""


class Outputs:
    """Everything that Terraform prints and the provider logs. The state and a plan, as JSON, have values by design."""

    def __init__(self, workspace: Workspace) -> None:
        self._log = workspace.folder / "provider.log"
        more = {"TF_LOG_PROVIDER": "TRACE", "TF_LOG_PATH": str(self._log)}
        self._project = Project(workspace.installation, workspace.folder, more)
        self._printed = ""

    def run(self, *arguments: str) -> str:
        """What a command prints."""
        command, *rest = arguments
        is_plain = command == "state"
        printed = "".join(self._project.start(command, *([] if is_plain else ["-no-color"]), *rest).communicate())
        self._printed += printed
        return printed

    @property
    def marks(self) -> list[str]:
        """The marks that were printed or logged."""
        return marks_in(self._printed + self._log.read_text())


def marks_in(text: str) -> list[str]:
    """The marks in a text, as they are or in base64."""
    return [mark for mark in MARKS if mark in text or base64.b64encode(mark.encode()).decode() in text]
