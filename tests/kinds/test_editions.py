"""An edition that the spec does not name, and a tier that does not exist in it: the error names the missing field."""

from typing import Any

import pytest

from setpoint.core.plan import Plan
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import ManifestInvalid, RemoteRefused, SetpointError
from tests.laws.google.cloud_harness import CloudHarness, manifest, run

IGNORE = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}
LISTED = {"cnrm.cloud.google.com/default-to-gcp-fields": "spec.settings.edition"}
CUSTOM, OPTIMIZED = "db-custom-2-8192", "db-perf-optimized-N-2"
INSTANCES = "/sql/v1beta4/projects/some-project/instances"


def with_live(edition: str, tier: str, version: str = "POSTGRES_15") -> CloudHarness:
    harness = CloudHarness()
    settings = {"tier": tier, "edition": edition}
    body = {"name": "db", "databaseVersion": version, "region": "us-central1", "settings": settings}
    assert harness.ask("POST", INSTANCES, body)
    harness.writes()
    return harness


def instance(annotations: dict[str, str], version: str = "POSTGRES_15", **settings: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"databaseVersion": version, "region": "us-central1", "settings": settings}
    return manifest("sql.cnrm.cloud.google.com/v1beta1", "SQLInstance", "db", spec, annotations=annotations)


def planned(harness: CloudHarness, document: dict[str, Any]) -> Plan | SetpointError:
    ref = run(harness.store.apply(document)).ref
    try:
        return run(harness.plan(ref))
    except SetpointError as error:
        return error


KEEPS_PLUS = (
    "spec.settings.edition is missing: the tier db-custom-2-8192 exists in ENTERPRISE only, and without it the edition "
    "of the instance is ENTERPRISE_PLUS; write ENTERPRISE, or a tier of ENTERPRISE_PLUS"
)
KEEPS_ENTERPRISE = (
    "spec.settings.edition is missing: the tier db-perf-optimized-N-2 exists in ENTERPRISE_PLUS only, and without it "
    "the edition of the instance is ENTERPRISE; write ENTERPRISE_PLUS, or a tier of ENTERPRISE"
)


@pytest.mark.parametrize("annotations", [{}, IGNORE, LISTED])
@pytest.mark.parametrize(
    ("edition", "live_tier", "tier", "message"),
    [("ENTERPRISE_PLUS", OPTIMIZED, CUSTOM, KEEPS_PLUS), ("ENTERPRISE", CUSTOM, OPTIMIZED, KEEPS_ENTERPRISE)],
)
def test_a_tier_of_another_edition_than_the_live_one_needs_an_edition_in_the_spec(
    annotations: dict[str, str], edition: str, live_tier: str, tier: str, message: str
) -> None:
    harness = with_live(edition, live_tier)

    error = planned(harness, instance(annotations, tier=tier))

    assert (type(error), str(error)) == (ManifestInvalid, message)
    assert harness.writes() == []


@pytest.mark.parametrize(
    ("version", "tier", "annotations", "message"),
    [
        ("POSTGRES_16", CUSTOM, IGNORE, KEEPS_PLUS),
        ("MYSQL_8_4", CUSTOM, LISTED, KEEPS_PLUS),
        ("POSTGRES_15", OPTIMIZED, IGNORE, KEEPS_ENTERPRISE),
        # The default of the spec is sent.
        ("POSTGRES_16", OPTIMIZED, {}, KEEPS_ENTERPRISE),
    ],
)
def test_a_new_instance_whose_tier_is_not_in_the_default_edition_needs_an_edition_in_the_spec(
    version: str, tier: str, annotations: dict[str, str], message: str
) -> None:
    harness = CloudHarness()

    error = planned(harness, instance(annotations, version, tier=tier))

    assert (type(error), str(error)) == (ManifestInvalid, message)


@pytest.mark.parametrize(("version", "tier"), [("POSTGRES_16", OPTIMIZED), ("POSTGRES_15", CUSTOM), ("MYSQL_8_0", "x")])
def test_a_tier_of_the_edition_that_the_service_chooses_is_planned(version: str, tier: str) -> None:
    plan = planned(CloudHarness(), instance(IGNORE, version, tier=tier))

    assert isinstance(plan, Plan)
    assert "spec.settings.edition" not in [str(change.path) for change in plan.changes]


@pytest.mark.parametrize("annotations", [{}, IGNORE])
def test_with_an_edition_in_the_spec_the_tier_changes(annotations: dict[str, str]) -> None:
    harness = with_live("ENTERPRISE_PLUS", OPTIMIZED)
    ref = run(harness.store.apply(instance(annotations, tier=CUSTOM, edition="ENTERPRISE"))).ref

    assert isinstance(run(harness.step_until_done(ref)), Settled)
    live = harness.found(f"{INSTANCES}/db")
    assert live is not None
    assert (live["settings"]["edition"], live["settings"]["tier"]) == ("ENTERPRISE", CUSTOM)


def test_an_unmanaged_edition_is_left_to_the_service_with_its_tier() -> None:
    harness = with_live("ENTERPRISE_PLUS", OPTIMIZED)
    unmanaged = {"cnrm.cloud.google.com/unmanaged": "spec.settings.edition"}

    assert isinstance(planned(harness, instance(unmanaged, tier=CUSTOM)), Plan)


def test_a_live_tier_is_no_error_whatever_the_edition() -> None:
    harness = with_live("ENTERPRISE", CUSTOM)
    harness.cloud.edit(f"{INSTANCES}/db", {"settings": {"edition": "ENTERPRISE_PLUS"}})

    assert isinstance(planned(harness, instance(IGNORE, tier=CUSTOM)), Plan)


def test_a_refusal_by_the_service_names_the_missing_field() -> None:
    harness = CloudHarness()
    # Without a version, it is not known which edition the service chooses.
    document = instance(IGNORE, tier=OPTIMIZED)
    del document["spec"]["databaseVersion"]
    ref = run(harness.store.apply(document)).ref

    outcome = run(harness.step_until_done(ref))

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, RemoteRefused)
    assert str(outcome.error) == (
        "POST /sql/v1beta4/projects/some-project/instances: 400: invalid: Invalid request: Invalid Tier "
        "(db-perf-optimized-N-2) for (ENTERPRISE) Edition. Use a predefined Tier like db-custom-* instead. If it is "
        "the tier: spec.settings.edition is missing: the tier db-perf-optimized-N-2 exists in ENTERPRISE_PLUS only, "
        "and without it the service chooses the edition; write ENTERPRISE_PLUS"
    )
