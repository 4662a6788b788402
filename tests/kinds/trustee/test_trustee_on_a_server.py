"""What is generated, on a real API server: it takes all of it, and what it adds is no difference."""

from typing import Any

import pytest

from setpoint.core.children import memory_of_children, remembered, renewed
from setpoint.core.covering import covers
from setpoint.core.openapi import schema_of
from setpoint.kinds.descriptions import descriptions
from setpoint.kinds.trustee.kbs_config import Images, KbsConfigSpec, KbsConfigStatus, deployment, service
from setpoint.kinds.trustee.trustee_config import TrusteeConfigSpec, TrusteeConfigStatus
from tests.cluster.access import Access
from tests.kinds.trustee.test_kbs_workload import EVERYTHING
from tests.kinds.trustee.worlds import kbs_config, made

FOLDERS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}
IMAGES = Images("operator:1", "kbs:1", "as:1", "rvps:1")
MICROSERVICES = {
    "kbsDeploymentType": "MicroservicesDeployment",
    "kbsAsConfigMapName": "a",
    "kbsRvpsConfigMapName": "r",
    "KbsEnvVars": {"B": "2", "A": ""},
}
WISHES = {
    "profileType": "Restricted",
    "httpsSpec": {"tlsSecretName": "server"},
    "attestationTokenVerificationSpec": {"tlsSecretName": "token"},
}


def created(server: Access, namespace: str, wanted: Any) -> Any:
    """The object as the server has it."""
    metadata = {**wanted["metadata"], "namespace": namespace}
    answer = server.call("POST", FOLDERS[wanted["kind"]].format(namespace), {**wanted, "metadata": metadata})
    assert answer.status == 201, answer.body
    return answer.body


@pytest.mark.parametrize("spec", [{}, EVERYTHING, MICROSERVICES], ids=["plain", "everything", "microservices"])
def test_a_server_takes_the_workload_and_adds_nothing_that_counts(
    api_server: Access, namespace: str, spec: dict[str, Any]
) -> None:
    for wanted in (deployment(*kbs_config(**spec), IMAGES, "settings:1"), service(*kbs_config(**spec))):
        live = created(api_server, namespace, wanted)

        assert covers(live["spec"], wanted["spec"])


@pytest.mark.parametrize("spec", [{}, WISHES, {"ibmSE": {"pvName": "certificates"}}], ids=["plain", "tls", "ibm"])
def test_a_server_takes_every_child_and_nothing_is_left_to_write(
    api_server: Access, namespace: str, spec: dict[str, Any]
) -> None:
    children = [child for child in made(**spec).values() if not child.key.startswith("KbsConfig")]
    memory = memory_of_children(children)

    for child in children:
        live = created(api_server, namespace, child.object)

        assert renewed(child, live, remembered(memory, child)).object is live


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [("TrusteeConfig", TrusteeConfigSpec, TrusteeConfigStatus), ("KbsConfig", KbsConfigSpec, KbsConfigStatus)],
)
def test_a_server_takes_the_types_checks_included(api_server: Access, kind: str, spec: Any, status: Any) -> None:
    group, plural = "confidentialcontainers.org", f"{kind.lower()}s"
    both = {"spec": schema_of(spec, descriptions), "status": schema_of(status, descriptions)}
    served = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": both}},
        "subresources": {"status": {}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }

    answer = api_server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", definition)

    assert answer.status == 201, answer.body
