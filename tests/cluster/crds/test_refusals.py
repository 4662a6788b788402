"""Specs and changes that the API server refuses by our definitions."""

from typing import Any

import pytest

from tests.cluster.crds.resources import CustomResources, manifest

INSTANCE = {"databaseVersion": "POSTGRES_16", "region": "europe-west1", "settings": {"tier": "db-custom-2-8192"}}

BUCKET = {"location": "EU", "customPlacementConfig": {"dataLocations": ["EUROPE-WEST1", "EUROPE-WEST4"]}}
USER = {"instanceRef": {"external": "shop"}, "host": "%", "type": "BUILT_IN"}
REGIONS = {"dataLocations": ["EUROPE-WEST1", "EUROPE-NORTH1"]}


@pytest.mark.parametrize(
    ("kind", "spec", "changed", "at"),
    [
        ("SQLInstance", INSTANCE, {"region": "us-central1"}, "spec.region"),
        ("SQLInstance", {**INSTANCE, "resourceID": "a"}, {"resourceID": "b"}, "spec.resourceID"),
        ("StorageBucket", BUCKET, {"location": "US"}, "spec.location"),
        ("StorageBucket", BUCKET, {"customPlacementConfig": REGIONS}, "spec.customPlacementConfig"),
        ("SQLUser", USER, {"host": "10.0.0.1"}, "spec.host"),
        ("SQLUser", USER, {"type": "CLOUD_IAM_USER"}, "spec.type"),
        ("SQLUser", USER, {"instanceRef": {"external": "projects/p/instances/other"}}, "spec.instanceRef"),
        ("SQLDatabase", {"instanceRef": {"name": "shop"}}, {"instanceRef": {"name": "b"}}, "spec.instanceRef"),
    ],
)
def test_a_change_of_an_immutable_field_is_refused_by_name(
    resources: CustomResources, kind: str, spec: Any, changed: Any, at: str
) -> None:
    made = resources.create(manifest(kind, spec)).body
    refused = resources.change(made, {**spec, **changed})

    assert refused.status == 422
    (cause,) = refused.body["details"]["causes"]
    assert cause["field"] == at
    assert "field is immutable: fixed when the object is created" in cause["message"]


@pytest.mark.parametrize(
    ("kind", "spec", "changed"),
    [
        ("StorageBucket", BUCKET, {"location": "eu"}),
        ("StorageBucket", BUCKET, {"location": None}),
        ("StorageBucket", {"location": None}, {"location": "EU"}),
        ("StorageBucket", BUCKET, {"customPlacementConfig": {"dataLocations": ["europe-west4", "Europe-west1"]}}),
        ("SQLUser", USER, {"instanceRef": {"external": "projects/p/instances/shop"}}),
        ("SQLUser", USER, {"instanceRef": {"name": "shop"}}),
        ("SQLInstance", {**INSTANCE, "masterInstanceRef": {"name": "a"}}, {"masterInstanceRef": None}),
    ],
)
def test_an_equivalent_value_of_an_immutable_field_is_accepted(
    resources: CustomResources, kind: str, spec: Any, changed: Any
) -> None:
    """Whether it is equivalent is decided by the kind, which knows the normal forms of its service."""
    made = resources.create(manifest(kind, spec)).body

    assert resources.change(made, {**spec, **changed}).status == 200


def test_an_immutable_field_may_be_removed_from_the_spec(resources: CustomResources) -> None:
    made = resources.create(manifest("StorageBucket", {"location": "EU"})).body

    assert resources.change(made, {}).status == 200


# --- Invalid specs ----------------------------------------------------------------------------------------------------

DELETE = {"action": {"type": "Delete"}}
ONE_OF_TWO = "write name or external, and not both"


@pytest.mark.parametrize(
    ("kind", "spec", "at", "message"),
    [
        ("SQLDatabase", {"instanceRef": {}}, "spec.instanceRef", ONE_OF_TWO),
        ("SQLDatabase", {"instanceRef": {"name": "a", "external": "b"}}, "spec.instanceRef", ONE_OF_TWO),
        ("SQLDatabase", {"instanceRef": {"name": "a"}, "resourceID": ""}, "spec.resourceID", "or leave it out"),
        (
            "SQLDatabase",
            {"instanceRef": {"name": "a"}, "deletionPolicy": "KEEP"},
            "spec.deletionPolicy",
            '"ABANDON" or',
        ),
        ("SQLUser", {**USER, "password": {}}, "spec.password", "write value or valueFrom"),
        ("SQLUser", {**USER, "type": "CLOUD_IAM_USER", "password": {"value": "a"}}, "spec.password", "type BUILT_IN"),
        (
            "SQLUser",
            {**USER, "passwordPolicy": {"passwordExpirationDuration": "1d"}},
            "spec.passwordPolicy.passwordExpirationDuration",
            "write it in seconds, as 2592000s",
        ),
        (
            "SQLInstance",
            {**INSTANCE, "settings": {"tier": "a", "ipConfiguration": {"pscConfig": [{}, {}]}}},
            "spec.settings.ipConfiguration.pscConfig",
            "keep one",
        ),
        ("SQLInstance", {**INSTANCE, "rootPassword": {}}, "spec.rootPassword", "write value or valueFrom"),
        (
            "StorageBucket",
            {"lifecycleRule": [{**DELETE, "condition": {"withState": "ANY", "matchesPrefix": []}}]},
            "spec.lifecycleRule[0].condition",
            "write age: 0 if that is meant",
        ),
        (
            "StorageBucket",
            {"customPlacementConfig": {"dataLocations": ["EUROPE-WEST1"]}},
            "spec.customPlacementConfig.dataLocations",
            "has to name two regions",
        ),
    ],
)
def test_an_invalid_spec_is_refused_with_the_field(
    resources: CustomResources, kind: str, spec: Any, at: str, message: str
) -> None:
    refused = resources.create_dry_run(manifest(kind, spec))

    assert refused.status == 422
    (cause,) = refused.body["details"]["causes"]
    assert cause["field"] == at
    assert message in cause["message"]


def test_two_flags_of_one_name_are_refused(resources: CustomResources) -> None:
    flags = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    refused = resources.create(manifest("SQLInstance", {"settings": {"tier": "a", "databaseFlags": flags}}))

    assert refused.body["details"]["causes"][0]["field"] == "spec.settings.databaseFlags[1]"


def test_a_wrong_type_is_refused_with_the_field(resources: CustomResources) -> None:
    refused = resources.create(manifest("StorageBucket", {"requesterPays": "yes"}))

    assert refused.body["details"]["causes"][0]["field"] == "spec.requesterPays"
