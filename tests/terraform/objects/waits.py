"""Configurations: a Service with a wait for its address, and a ConfigMap that depends on it."""

from typing import Final

from tests.terraform.objects.workspace import A, Workspace, declared, valued

ADDRESS: Final = "status.loadBalancer.ingress[0].ip"
TIMEOUT: Final = "100ms"
# For waits that time out, and for values that exist already: those are found without waiting.
WAIT: Final = f'wait_for = {{ field = "{ADDRESS}", timeout = "{TIMEOUT}" }}'
# For values that another thread sets during the apply.
LONG_WAIT: Final = WAIT.replace(TIMEOUT, "240s")


def service(name: str = "web", port: int = 80, more: str = WAIT) -> str:
    """A Service of type LoadBalancer."""
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
    """The address in the ConfigMap; None when that does not exist."""
    found = workspace.get("configmaps", "after")
    return None if found is None else str(found["data"]["address"])


def timed_out(workspace: Workspace, text: str | None = None) -> str:
    """Applies, and the wait times out; the uid of the Service that is left."""
    summary, detail = workspace.failed(text)
    assert summary == "Wait timed out", detail
    assert ADDRESS in detail, detail
    return workspace.uid("services", "web")
