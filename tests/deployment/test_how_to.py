"""Every command of the pages about Kubernetes and about tenants succeeds on a real API server."""

from pathlib import Path
from shutil import copytree

import pytest

from tests.cluster.fixtures import NewApiServer
from tests.cluster.server import Settings
from tests.deployment.chart import helm
from tests.deployment.conftest import Kubectl
from tests.deployment.installed_objects import ALL_KINDS
from tests.deployment.terminal import Terminal, boxes_of, sections_of

PAGE = Path("docs/how-to/run-on-kubernetes.md")
TENANT_PAGE = Path("docs/how-to/set-up-a-tenant.md")
# Each section is independent. This one needs a cluster without the CRDs, the others may find them; and these begin with
# an installation.
EMPTY = "With Helm"
INSTALLED = ("What it may do", "Take it away, and keep what it made", "When it was removed too early")
HANGING = """
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: logs
  namespace: default
  finalizers: [cnrm.cloud.google.com/finalizer]
spec:
  location: EU
"""


@pytest.fixture
def terminal(new_api_server: NewApiServer, kubectl_alone: Kubectl, tmp_path: Path) -> Terminal:
    copytree("deploy", tmp_path / "deploy")
    (tmp_path / "key.json").write_text("{}", encoding="utf-8")
    # The commands wait for no other controller. Without a cache for watches, a list of a new kind does not wait for it.
    settings = Settings(controllers=("namespace-controller",), arguments=("--watch-cache=false",))
    access = new_api_server(settings).access
    return Terminal(Kubectl(kubectl_alone.program, access), tmp_path, programs=(helm(),))


def test_every_command_of_both_pages_succeeds(terminal: Terminal) -> None:
    sections = sections_of(PAGE)
    terminal.run(sections[EMPTY])
    for heading, commands in sections.items():
        if heading == EMPTY:
            continue
        if heading == INSTALLED[0]:
            # The kinds are there, from the section before.
            terminal.run("".join(boxes_of(TENANT_PAGE)))
        if heading in INSTALLED:
            # With the kinds that `setpoint crds` prints, which one section deletes: kubectl remembers them for a while.
            terminal.run(f"setpoint install --force --kinds {','.join(ALL_KINDS)}")
        if heading == INSTALLED[-1]:
            terminal.run(f"kubectl apply -f - <<'END'\n{HANGING}\nEND\nkubectl delete setpoint --all --wait=false")
        terminal.run(commands)

    assert terminal.run("kubectl get setpoint --all-namespaces") == ""
    assert len(sections) == 11
