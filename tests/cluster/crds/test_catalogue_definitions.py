"""The definition of every kind of the catalogue on a real API server: structural, and within its budget of rules."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from setpoint.app import definitions_of
from setpoint.catalogue.index import indexed_kinds
from setpoint.core.values.json_types import JsonObject
from tests.cluster.access import Access

_DRY_RUN: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
PUBSUB: Final = "pubsub.cnrm.cloud.google.com"


@pytest.fixture(scope="module")
def every_definition() -> Mapping[tuple[str, str], JsonObject]:
    """The definitions, by group and kind."""
    return definitions_of(indexed_kinds())


def test_an_api_server_takes_the_definition_of_every_kind(
    api_server: Access, every_definition: Mapping[tuple[str, str], JsonObject]
) -> None:
    answers = {name: api_server.call("POST", _DRY_RUN, one) for name, one in every_definition.items()}

    assert {name: one.body for name, one in answers.items() if one.status != 201} == {}
    assert len(answers) >= 200


def test_a_definition_has_the_names_of_config_connector() -> None:
    wanted = {
        ("compute.cnrm.cloud.google.com", "ComputeAddress"): "computeaddresses",
        ("compute.cnrm.cloud.google.com", "ComputeTargetHTTPProxy"): "computetargethttpproxies",
        ("kms.cnrm.cloud.google.com", "KMSCryptoKey"): "kmscryptokeys",
    }
    found: dict[Any, Any] = {name: one["spec"] for name, one in definitions_of(wanted).items()}

    assert {name: one["names"]["plural"] for name, one in found.items()} == wanted
    names = found["compute.cnrm.cloud.google.com", "ComputeAddress"]["names"]
    assert names["shortNames"] == ["gcpcomputeaddress", "gcpcomputeaddresses"]
    assert names["categories"] == ["gcp", "setpoint"]


def test_the_status_has_what_the_service_sets() -> None:
    topic: Any = definitions_of([(PUBSUB, "PubSubTopic")])[PUBSUB, "PubSubTopic"]
    status = topic["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]

    assert {"externalRef", "selfLink", "observedState", "state", "conditions", "observedGeneration"} <= status.keys()
    assert "state" in status["observedState"]["properties"]


def test_a_definition_of_a_preview_says_so() -> None:
    previews = {name for name, one in indexed_kinds().items() if not one.is_recorded}
    marked, unmarked = sorted(previews)[0], (PUBSUB, "PubSubTopic")
    found: Any = definitions_of([marked, unmarked])

    assert found[marked]["metadata"]["annotations"] == {"setpoint.dev/preview": "true"}
    described = found[marked]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"]
    assert described.endswith("Preview: no recording of the service shows it to be right yet.")
    assert "annotations" not in found[unmarked]["metadata"]


def test_a_list_without_a_bound_has_patterns_instead_of_rules() -> None:
    name = ("dns.cnrm.cloud.google.com", "DNSPolicy")
    found: Any = definitions_of([name])[name]
    spec = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    servers = spec["alternativeNameServerConfig"]["properties"]["targetNameServers"]["items"]["properties"]

    assert servers["forwardingPath"]["pattern"] == "^(?:|default|private)$"
    assert "x-kubernetes-validations" not in servers["forwardingPath"]
