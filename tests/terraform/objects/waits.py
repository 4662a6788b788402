"""A Service that waits for its address, and a ConfigMap that holds it."""

from typing import Final

from tests.terraform.objects.workspace import A, Workspace, declared, valued

ADDRESS: Final = "status.loadBalancer.ingress[0].ip"
# For waits that are to fail, or for what is there already.
WAIT: Final = f'wait_for = {{ field = "{ADDRESS}", timeout = "3s" }}'
# For what another thread changes meanwhile, on a busy machine.
PATIENTLY: Final = WAIT.replace("3s", "240s")


def service(name: str = "web", port: int = 80, more: str = WAIT) -> str:
    """A Service that a load balancer is to be made for."""
    return declared(
        "a",
        f"""
        apiVersion: v1
        kind: Service
        metadata: {{name: {name}, namespace: NAMESPACE}}
        spec: {{type: LoadBalancer, selector: {{app: web}}, ports: [{{port: {port}}}]}}
        """,
        more,
    )


DEPENDENT: Final = valued(
    "b",
    f"""{{
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = {{ name = "after", namespace = "NAMESPACE" }}
    data       = {{ address = {A}.{ADDRESS} }}
  }}""",
)
BOTH: Final = service() + DEPENDENT


def address_known(workspace: Workspace) -> str | None:
    """What the ConfigMap says; None when there is none."""
    found = workspace.get("configmaps", "after")
    return None if found is None else str(found["data"]["address"])


def timed_out(workspace: Workspace, text: str | None = None) -> str:
    """Applies until the wait is over; the uid of the Service that it leaves behind."""
    summary, detail = workspace.failed(text)
    assert summary == "Wait timed out", detail
    assert ADDRESS in detail, detail
    return workspace.uid("services", "web")
