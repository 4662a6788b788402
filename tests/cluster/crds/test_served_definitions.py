"""Our definitions in a real API server."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.cluster.access import Access
from tests.cluster.crds.conftest import Kubectl
from tests.cluster.crds.resources import Corner, manifest

INSTANCE = {"databaseVersion": "POSTGRES_16", "region": "europe-west1", "settings": {"tier": "db-custom-2-8192"}}
GOOGLE = "sqldatabases sqlinstances sqlusers storagebuckets"


def test_a_cluster_takes_them_and_finds_nothing_wrong(cluster: Access, definitions: str) -> None:
    for document in yaml.safe_load_all(definitions):
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
    assert len(before) == 7


@pytest.mark.usefixtures("cluster")
def test_client_side_apply_takes_them_too(kubectl: Kubectl, definitions: str) -> None:
    kubectl("apply", "--dry-run=server", "-f", "-", stdin=definitions)


@pytest.mark.usefixtures("cluster")
def test_explain_tells_what_a_field_is(kubectl: Kubectl) -> None:
    told = " ".join(kubectl("explain", "sqlinstance.spec.settings").split())

    assert "tier <string> -required- The machine, such as `db-custom-2-8192`." in told
    assert 'edition <string> ENTERPRISE or ENTERPRISE_PLUS. Default: "ENTERPRISE".' in told


def test_a_list_shows_how_it_stands(corner: Corner, kubectl: Kubectl) -> None:
    made = corner.create(manifest("SQLInstance", INSTANCE)).body
    ready = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": "The resource is up to date"}
    corner.report(made, {"conditions": [{**ready, "lastTransitionTime": made["metadata"]["creationTimestamp"]}]})

    for name in ("sqlinstances", "gcpsqlinstance", "gcpsqlinstances"):
        header, line = kubectl("get", name, "-n", corner.namespace).splitlines()
        assert re.split(r"\s{2,}", header.strip()) == ["NAME", "READY", "REASON", "STATUS AGE", "AGE"]
        assert line.split()[:3] == ["one", "True", "UpToDate"]
    assert "The resource is up to date" in kubectl("get", "sqlinstances", "-n", corner.namespace, "-o", "wide")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("category", "names"), [("gcp", GOOGLE), ("setpoint", f"kubernetesobjects {GOOGLE}")])
def test_a_category_lists_all_kinds(category: str, names: str, kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", f"--categories={category}", "-o", "name").split()

    ours = ("cnrm", "setpoint.dev")
    assert sorted(one.partition(".")[0] for one in listed if any(group in one for group in ours)) == names.split()


def test_an_explicit_null_survives_server_side_apply(corner: Corner, kubectl: Kubectl) -> None:
    """To give up protection by null, the null has to arrive."""
    bucket = manifest("StorageBucket", {"location": "EU", "retentionPolicy": None})
    kubectl("apply", "--server-side", "-n", corner.namespace, "-f", "-", stdin=json.dumps(bucket))

    assert corner.read(bucket)["spec"] == {"location": "EU", "retentionPolicy": None}
