"""How Terraform finds and starts providers: with the real Terraform."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.terraform.command import Installation, Project
from tests.terraform.conftest import NewProject
from tests.terraform.texts import thing

TWO = """
terraform {
  required_providers {
    probe = { source = "acme/probe" }
    other = { source = "acme/other" }
  }
}
provider "probe" {
  folder = "OBJECTS"
}
provider "other" {
  folder = "OBJECTS"
}
resource "probe_thing" "a" {
  name = "a"
}
resource "other_thing" "b" {
  name = "b"
  tags = { from = probe_thing.a.id }
}
"""


def test_two_providers_work_side_by_side(new_project: NewProject) -> None:
    project = new_project(TWO)
    applied = project.apply()

    assert applied.summary("apply") == (2, 0, 0)
    assert project.attributes("other_thing.b")["tags"] == {"from": "thing-a"}
    assert project.plan().code == 0


def test_a_certificate_is_made_once_and_only_its_user_may_read_it(
    new_project: NewProject, installation: Installation
) -> None:
    project = new_project(thing())
    project.plan()
    kept = Path(installation.environment["HOME"], ".cache", "setpoint", "terraform", "server.pem")
    first = kept.read_text()
    project.plan()

    assert kept.read_text() == first
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_log_record_keeps_its_level(new_project: NewProject) -> None:
    project = new_project(thing(behaviour='"bug in plan"'))
    logged = Project(project.installation, project.folder, {"TF_LOG_PROVIDER": "ERROR"})

    assert "[ERROR] provider.terraform-provider-probe_v1.0.0: bug: " in logged.plan().errors


def test_schemas_have_their_descriptions(new_project: NewProject) -> None:
    project = new_project(thing())
    shown = subprocess.run(
        [project.installation.binary, f"-chdir={project.folder}", "providers", "schema", "-json"],
        env=project.installation.environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert '"description":"Its name."' in shown.stdout
    assert '"nesting_mode":"map"' in shown.stdout


def test_a_running_provider_is_used_and_left_running(new_project: NewProject) -> None:
    project = new_project(thing())
    script = (
        "from setpoint.terraform.rpc.server import serve_for_reattach as serve\n"
        "from tests.terraform.probe.provider import ProbeProvider\n"
        "serve(ProbeProvider(), 'registry.terraform.io/acme/probe')\n"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        name, _, value = served.stdout.readline().strip().partition("=")
        attached = Project(project.installation, project.folder, {name: value.strip("'")})
        applied = attached.apply()
        planned = attached.plan()
        served.send_signal(signal.SIGINT)

        assert served.wait(30) == 0
    assert (applied.summary("apply"), planned.code) == ((1, 0, 0), 0)
