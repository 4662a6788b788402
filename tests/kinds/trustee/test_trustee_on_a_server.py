"""Generated objects on a real API server: it accepts all of them, and its defaults are no drift."""

from typing import Any

import pytest

from setpoint.core.merge.children import child_update, contains_all, last_generated_status, read_last_generated
from setpoint.kinds.trustee.kbs_config import TrusteeImages, deployment, service
from setpoint.kinds.trustee.kbs_config.workload import WorkloadInputs, workload
from tests.cluster.access import Access
from tests.kinds.trustee.test_kbs_workload import EVERYTHING
from tests.kinds.trustee.trustee_objects import kbs_config, made

FOLDERS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}
IMAGES = TrusteeImages("operator:1", "kbs:1", "as:1", "rvps:1")
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
    """The object as the server stores it: without its owner, which does not exist, or it would be garbage collected."""
    metadata = {**wanted["metadata"], "namespace": namespace, "ownerReferences": []}
    answer = server.call("POST", FOLDERS[wanted["kind"]].format(namespace), {**wanted, "metadata": metadata})
    assert answer.status == 201, answer.body
    return answer.body


@pytest.mark.parametrize("spec", [{}, EVERYTHING, MICROSERVICES], ids=["plain", "everything", "microservices"])
def test_a_server_accepts_the_workload_and_its_defaults_are_no_drift(
    api_server: Access, namespace: str, spec: dict[str, Any]
) -> None:
    for wanted in (deployment(*kbs_config(**spec), IMAGES, WorkloadInputs("settings:1")), service(*kbs_config(**spec))):
        live = created(api_server, namespace, wanted)

        assert contains_all(live["spec"], wanted["spec"])


def written(server: Access, namespace: str, spec: Any, live: dict[str, Any]) -> dict[str, Any]:
    """Both objects after one pass over the `live` ones, by kind; an object without a write is returned unchanged."""
    after = {}
    for child in workload(*kbs_config(**spec), IMAGES, WorkloadInputs("settings:1")):
        made: Any = child_update(child, live[child.key], None).object
        if made is not live[child.key]:
            place = f"{FOLDERS[made['kind']].format(namespace)}/{made['metadata']['name']}"
            answer = server.call("PUT", place, made)
            assert answer.status == 200, answer.body
            made = answer.body
        after[child.key] = made
    return after


def by_hand(live: dict[str, Any]) -> dict[str, Any]:
    """The Deployment after edits of another writer."""
    pod = live["spec"]["template"]["spec"]
    (broker,) = pod["containers"]
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 60}
    mine = {"name": "mine", "image": "mine:1"}
    changed = {**broker, "env": [{"name": "mine", "value": "1"}], "livenessProbe": probe, "resources": LIMITS}
    volumes = [{"name": "kbs-config", "emptyDir": {}}, *pod["volumes"][1:]]
    full = {**pod, "containers": [mine, changed], "volumes": volumes, "nodeSelector": {"disk": "ssd"}}
    return {**live, "spec": {**live["spec"], "template": {**live["spec"]["template"], "spec": full}}}


LIMITS = {"limits": {"cpu": "1"}}
DEPLOYMENT, SERVICE = "Deployment/trustee-deployment", "Service/kbs-service"


def test_a_server_accepts_every_change_and_keeps_fields_of_other_writers(api_server: Access, namespace: str) -> None:
    children = workload(*kbs_config(), IMAGES, WorkloadInputs("settings:1"))
    live = {child.key: created(api_server, namespace, child.object) for child in children}
    place = f"{FOLDERS['Deployment'].format(namespace)}/trustee-deployment"
    answer = api_server.call("PUT", place, by_hand(live[DEPLOYMENT]))
    assert answer.status == 200, answer.body

    back = written(api_server, namespace, {}, {**live, DEPLOYMENT: answer.body})

    pod = back[DEPLOYMENT]["spec"]["template"]["spec"]
    (broker,) = pod["containers"]
    assert (pod["nodeSelector"], broker["resources"], broker.get("env")) == ({"disk": "ssd"}, LIMITS, None)
    assert "exec" not in broker["livenessProbe"]
    assert written(api_server, namespace, {}, back)[DEPLOYMENT] is back[DEPLOYMENT]
    address = live[SERVICE]["spec"]["clusterIP"]
    for type_, has_port in (("NodePort", True), ("LoadBalancer", True), ("ClusterIP", False)):
        back = written(api_server, namespace, {"kbsServiceType": type_, "KbsEnvVars": {"A": type_}}, back)
        assert (back[SERVICE]["spec"]["type"], back[SERVICE]["spec"]["clusterIP"]) == (type_, address)
        assert ("nodePort" in back[SERVICE]["spec"]["ports"][0]) is has_port


@pytest.mark.parametrize("spec", [{}, WISHES, {"ibmSE": {"pvName": "certificates"}}], ids=["plain", "tls", "ibm"])
def test_a_server_accepts_every_child_and_nothing_is_left_to_write(
    api_server: Access, namespace: str, spec: dict[str, Any]
) -> None:
    children = [child for child in made(**spec).values() if not child.key.startswith("KbsConfig")]
    memory = last_generated_status(children)

    for child in children:
        live = created(api_server, namespace, child.object)

        assert child_update(child, live, read_last_generated(memory, child)).object is live
