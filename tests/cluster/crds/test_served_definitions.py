"""Our CustomResourceDefinitions on a real API server."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.cluster.access import Access
from tests.cluster.crds.conftest import Kubectl
from tests.cluster.crds.resources import CustomResources, manifest

INSTANCE = {"databaseVersion": "POSTGRES_16", "region": "europe-west1", "settings": {"tier": "db-custom-2-8192"}}
POLICIES = "iampartialpolicies iampolicies iampolicymembers iamserviceaccountkeys"
SQL_AND_STORAGE = "sqldatabases sqlinstances sqlusers storagebuckets"
GOOGLE = f"{POLICIES} {SQL_AND_STORAGE}"
OURS = f"{POLICIES} kubernetesobjects referencegrants {SQL_AND_STORAGE}"


def test_the_definitions_are_established(cluster: Access, definitions: str) -> None:
    named = [one for one in yaml.safe_load_all(definitions) if one["kind"] == "CustomResourceDefinition"]
    assert len(named) == 12
    for document in named:
        name = document["metadata"]["name"]
        found = cluster.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}").body

        conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_applying_them_again_changes_nothing(cluster: Access, kubectl: Kubectl, definitions: str) -> None:
    def versions() -> Any:
        listed = json.loads(kubectl("get", "crd", "-l", "app.kubernetes.io/part-of=setpoint", "-o", "json"))
        return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in listed["items"]}

    before = versions()
    kubectl("apply", "--server-side", "-f", "-", stdin=definitions)

    assert versions() == before
    assert len(before) == 12


@pytest.mark.usefixtures("cluster")
def test_client_side_apply_accepts_them(kubectl: Kubectl, definitions: str) -> None:
    kubectl("apply", "--dry-run=server", "-f", "-", stdin=definitions)


@pytest.mark.usefixtures("cluster")
def test_kubectl_explain_shows_type_and_description(kubectl: Kubectl) -> None:
    shown = " ".join(kubectl("explain", "sqlinstance.spec.settings").split())

    assert "tier <string> -required- The machine, such as `db-custom-2-8192`." in shown
    assert 'edition <string> ENTERPRISE or ENTERPRISE_PLUS. Default: "ENTERPRISE".' in shown


def test_kubectl_get_shows_the_condition_ready(resources: CustomResources, kubectl: Kubectl) -> None:
    made = resources.create(manifest("SQLInstance", INSTANCE)).body
    ready = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": "The resource is up to date"}
    resources.replace_status(
        made, {"conditions": [{**ready, "lastTransitionTime": made["metadata"]["creationTimestamp"]}]}
    )

    for name in ("sqlinstances", "gcpsqlinstance", "gcpsqlinstances"):
        header, line = kubectl("get", name, "-n", resources.namespace).splitlines()
        assert re.split(r"\s{2,}", header.strip()) == ["NAME", "READY", "REASON", "STATUS AGE", "AGE"]
        assert line.split()[:3] == ["one", "True", "UpToDate"]
    assert "The resource is up to date" in kubectl("get", "sqlinstances", "-n", resources.namespace, "-o", "wide")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("category", "names"), [("gcp", GOOGLE), ("setpoint", OURS)])
def test_a_category_lists_all_kinds(category: str, names: str, kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", f"--categories={category}", "-o", "name").split()

    ours = ("cnrm", "setpoint.dev")
    assert sorted(one.partition(".")[0] for one in listed if any(group in one for group in ours)) == names.split()


def test_an_explicit_null_survives_server_side_apply(resources: CustomResources, kubectl: Kubectl) -> None:
    """A null removes protection, so it has to be stored."""
    bucket = manifest("StorageBucket", {"location": "EU", "retentionPolicy": None})
    kubectl("apply", "--server-side", "-n", resources.namespace, "-f", "-", stdin=json.dumps(bucket))

    assert resources.read(bucket)["spec"] == {"location": "EU", "retentionPolicy": None}
