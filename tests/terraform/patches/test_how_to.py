"""The how-to page about patches: every command prints what the page shows."""

from pathlib import Path
from typing import Final

import pytest

from tests.cluster.access import Access
from tests.docs.sessions import TYPED
from tests.terraform.command import Installation
from tests.terraform.test_tutorial import FENCE, TutorialShell, is_shown

PAGE: Final = Path("docs/how-to/patch-an-object.md")


@pytest.mark.usefixtures("controllers")
def test_every_command_of_the_page_prints_what_is_shown(
    patch_installation: Installation, api_server: Access, kubectl_program: Path, tmp_path: Path
) -> None:
    shell = TutorialShell(patch_installation.binary, api_server.kubeconfig, kubectl_program, tmp_path / "home")
    shell.environment["TF_CLI_CONFIG_FILE"] = patch_installation.environment["TF_CLI_CONFIG_FILE"]
    for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "hcl":
            shell.write(body)
        elif language == "console":
            for line, shown in TYPED.findall(body):
                printed = shell.run(line)
                assert is_shown(printed, shown), f"$ {line}\n{printed}"
