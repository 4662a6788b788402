"""StorageBucket in the local cloud: adoption, drift, lock, concurrent changes, deletion."""

from typing import Any

import pytest

from setpoint.clients.http import HttpRequest
from setpoint.core.decide import Decision
from setpoint.engine.context import FINALIZER
from setpoint.engine.intent import check_manifest
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import (
    DependencyNotFound,
    DependencyNotReady,
    ImmutableFieldChanged,
    LocationChanged,
    ManifestInvalid,
    RemoteConflict,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.localcloud.faults import AddFields, FailRequest
from tests.kinds.kind_harness import PROJECT, STORAGE, KindHarness, bucket, in_kind_harness

REF = ResourceRef(STORAGE, "StorageBucket", "team", "some-bucket")
PATH = "/storage/v1/b/some-bucket"
IGNORE = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}
FORCE = {"cnrm.cloud.google.com/force-destroy": "true"}


def make_by_hand(engine: KindHarness, **members: Any) -> None:
    """A bucket without a resource."""
    engine.cloud.call("POST", f"/storage/v1/b?project={PROJECT}", {"name": "some-bucket", **members})
    engine.cloud.journal.clear()


def error_in(outcome: StepOutcome) -> SetpointError:
    assert isinstance(outcome, Stopped), outcome
    return outcome.error


# --- Observing -------------------------------------------------------------------------------------------------------


def test_the_status_shows_what_config_connector_shows() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({}))
        status = (await engine.resource(REF)).status
        return {name: status[name] for name in ("url", "selfLink", "observedState", "observedGeneration")}

    assert in_kind_harness(scenario) == {
        "url": "gs://some-bucket",
        "selfLink": "https://www.googleapis.com/storage/v1/b/some-bucket",
        "observedState": {
            "softDeletePolicy": {"effectiveTime": "2026-01-01T00:00:00.000Z", "retentionDurationSeconds": 604800},
            "storageClass": "STANDARD",
        },
        "observedGeneration": 1,
    }


def test_a_bucket_that_is_as_declared_is_adopted_without_a_write() -> None:
    async def scenario(engine: KindHarness) -> Any:
        make_by_hand(engine, labels={"managed-by-cnrm": "true"}, location="EU", versioning={"enabled": True})
        outcome = await engine.settle(bucket({"versioning": {"enabled": True}}))
        return outcome, engine.sent

    outcome, sent = in_kind_harness(scenario)

    assert isinstance(outcome, Settled)
    assert (outcome.ready.reason, sent) == ("UpToDate", [])


def test_unmodelled_and_volatile_members_are_no_drift() -> None:
    async def scenario(engine: KindHarness) -> StepOutcome:
        await engine.settle(bucket({"autoclass": {"enabled": True}}))
        engine.cloud.inject(
            AddFields({"novelty": {"enabled": True}, "autoclass": {"mood": "good"}}, kind="storage#bucket")
        )
        engine.cloud.edit(
            PATH, {"updated": "2026-02-02T00:00:00Z", "autoclass": {"toggleTime": "2026-02-02T00:00:00Z"}}
        )
        return await step(REF, engine.engine)

    outcome = in_kind_harness(scenario)

    assert isinstance(outcome, Settled)
    assert outcome.plan.decision is Decision.IN_SYNC


def test_an_outage_is_not_taken_for_absence() -> None:
    async def scenario(engine: KindHarness) -> Any:
        ref = await engine.apply(bucket({}))
        engine.cloud.inject(FailRequest(503, method="GET", retry_after=9))
        return await step(ref, engine.engine), engine.sent

    outcome, sent = in_kind_harness(scenario)

    error = error_in(outcome)
    assert isinstance(error, RemoteUnavailable)
    assert (error.after, sent) == (9.0, [])


# --- Changing --------------------------------------------------------------------------------------------------------


def test_drift_is_reverted_and_labels_of_the_service_are_kept() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({"storageClass": "NEARLINE"}))
        engine.cloud.edit(PATH, {"storageClass": "ARCHIVE", "labels": {"foreign": "x", "goog-dataplex-zone": "y"}})
        await engine.step_until_done(REF)
        return engine.sent[1:], engine.live(PATH)["labels"]

    assert in_kind_harness(scenario) == (
        [("PATCH", {"storageClass": "NEARLINE", "labels": {"managed-by-cnrm": "true", "foreign": None}})],
        {"managed-by-cnrm": "true", "goog-dataplex-zone": "y"},
    )


def test_unspecified_fields_of_a_bucket_are_not_written_under_ignore_unspecified_fields() -> None:
    async def scenario(engine: KindHarness) -> Any:
        make_by_hand(engine, labels={"foreign": "x"}, storageClass="ARCHIVE", retentionPolicy={"retentionPeriod": "60"})
        outcome = await engine.settle(bucket({}, annotations=IGNORE))
        return type(outcome), engine.sent

    assert in_kind_harness(scenario) == (Settled, [])


def test_unmanaged_fields_are_kept() -> None:
    async def scenario(engine: KindHarness) -> Any:
        make_by_hand(engine, labels={"foreign": "x"}, storageClass="ARCHIVE", versioning={"enabled": True})
        await engine.settle(bucket({"requesterPays": True}, annotations=IGNORE))
        return engine.sent

    assert in_kind_harness(scenario) == [("PATCH", {"billing": {"requesterPays": True}})]


@pytest.mark.parametrize(
    ("after", "guarded"),
    [
        (bucket({"versioning": {"enabled": True}}, labels={"team": "red"}), False),
        (bucket({"versioning": {"enabled": True}}), False),
        (bucket({"uniformBucketLevelAccess": True}, labels={"team": "red"}), True),
        (
            bucket(
                {"uniformBucketLevelAccess": True, "publicAccessPrevention": "enforced"},
                labels={"team": "red"},
            ),
            False,
        ),
    ],
    ids=["all declared", "label removed", "neighbour kept", "neighbour declared"],
)
def test_a_patch_with_observed_values_is_valid_for_that_metageneration_only(
    after: dict[str, Any], guarded: bool
) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({}, labels={"team": "red"}))
        await engine.settle(after)
        return engine.writes[-1].query.get("ifMetagenerationMatch")

    assert in_kind_harness(scenario) == ("1" if guarded else None)


def test_a_concurrent_change_is_not_overwritten_by_observed_values() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({}))
        ref = await engine.apply(bucket({"uniformBucketLevelAccess": True}))

        def drift(request: HttpRequest) -> None:
            if request.method == "PATCH":
                engine.http.interrupt = lambda request: None
                engine.cloud.edit(PATH, {"iamConfiguration": {"publicAccessPrevention": "enforced"}})

        engine.http.interrupt = drift
        first, second = await step(ref, engine.engine), await step(ref, engine.engine)
        return first, second, engine.live(PATH)["iamConfiguration"]["publicAccessPrevention"]

    first, second, prevention = in_kind_harness(scenario)

    assert isinstance(error_in(first), RemoteConflict)
    assert isinstance(second, Settled)
    assert prevention == "enforced"


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"location": "EU"}, 'spec.location cannot change from "US" to "EU"'),
        (
            {"customPlacementConfig": {"dataLocations": ["US-EAST1", "US-WEST1"]}},
            'spec.customPlacementConfig.dataLocations cannot change from nothing to ["US-EAST1","US-WEST1"]',
        ),
    ],
)
def test_a_change_of_an_immutable_field_is_refused(after: dict[str, Any], message: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({}))
        return await engine.settle(bucket(after)), engine.sent[1:]

    outcome, sent = in_kind_harness(scenario)

    error = error_in(outcome)
    assert isinstance(error, ImmutableFieldChanged)
    assert str(error).startswith(message)
    assert sent == []


def test_a_change_of_the_bucket_name_is_refused() -> None:
    async def scenario(engine: KindHarness) -> StepOutcome:
        await engine.settle(bucket({}))
        return await engine.settle(bucket({"resourceID": "other-bucket"}))

    assert isinstance(error_in(in_kind_harness(scenario)), LocationChanged)


# --- The lock --------------------------------------------------------------------------------------------------------


def test_a_retention_policy_is_locked_after_it_is_as_declared() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({"retentionPolicy": {"retentionPeriod": 60, "isLocked": True}}))
        return [(entry.method, entry.path, entry.query.get("ifMetagenerationMatch")) for entry in engine.writes]

    assert in_kind_harness(scenario) == [
        ("POST", "/storage/v1/b", None),
        ("POST", f"{PATH}/lockRetentionPolicy", "1"),
    ]


def test_a_longer_period_is_sent_before_the_lock() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({"retentionPolicy": {"retentionPeriod": 60}}))
        await engine.settle(bucket({"retentionPolicy": {"retentionPeriod": 90, "isLocked": True}}))
        return engine.sent[1:]

    assert in_kind_harness(scenario) == [("PATCH", {"retentionPolicy": {"retentionPeriod": "90"}}), ("POST", None)]


def test_an_unspecified_lock_is_kept_and_cannot_be_undone() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({"retentionPolicy": {"retentionPeriod": 60, "isLocked": True}}))
        silent = await engine.settle(bucket({"retentionPolicy": {"retentionPeriod": 60}}))
        opening: dict[str, Any] = {"retentionPolicy": {"retentionPeriod": 60, "isLocked": False}, "requesterPays": True}
        opened = await engine.settle(bucket(opening))
        return silent, opened, len(engine.sent)

    silent, opened, sent = in_kind_harness(scenario)

    assert isinstance(silent, Settled)
    assert isinstance(error_in(opened), ImmutableFieldChanged)
    assert sent == 2


# --- References ------------------------------------------------------------------------------------------------------


def key(status: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kms.cnrm.cloud.google.com/v1beta1",
        "kind": "KMSCryptoKey",
        "metadata": {"name": "some-key", "namespace": "team"},
        "spec": {},
        "status": status,
    }


def test_a_key_named_as_a_resource_is_waited_for() -> None:
    async def scenario(engine: KindHarness) -> Any:
        manifest = bucket({"encryption": {"kmsKeyRef": {"name": "some-key"}}})
        missing = await engine.settle(manifest)
        unready = await engine.store.apply(key({}))
        waiting = await engine.settle(manifest)
        await engine.store.update_status(unready, {**ready(), "selfLink": "projects/p/keys/k"})
        await engine.settle(manifest)
        return missing, waiting, engine.live(PATH)["encryption"]

    missing, waiting, encryption = in_kind_harness(scenario)

    assert type(error_in(missing)) is DependencyNotFound
    assert type(error_in(waiting)) is DependencyNotReady
    assert encryption == {"defaultKmsKeyName": "projects/p/keys/k"}


def test_a_network_named_as_a_resource_is_sent_by_its_link() -> None:
    network = {**key({}), "apiVersion": "compute.cnrm.cloud.google.com/v1beta1", "kind": "ComputeNetwork"}
    source = {"networkRef": {"name": "some-key"}, "allowedIpCidrRanges": ["10.0.0.0/8"]}

    async def scenario(engine: KindHarness) -> Any:
        applied = await engine.store.apply(network)
        link = "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"
        await engine.store.update_status(applied, {**ready(), "selfLink": link})
        await engine.settle(bucket({"ipFilter": {"mode": "Enabled", "vpcNetworkSources": [source]}}))
        return engine.sent[0][1]["ipFilter"]["vpcNetworkSources"]

    link = "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"
    assert in_kind_harness(scenario) == [{"network": link, "allowedIpCidrRanges": ["10.0.0.0/8"]}]


def ready() -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": "", "lastTransitionTime": ""}
    return {"conditions": [condition], "observedGeneration": 1}


# --- Deletion --------------------------------------------------------------------------------------------------------


def upload(engine: KindHarness, *names: str) -> None:
    for name in names:
        engine.cloud.call("POST", f"/upload{PATH}/o?uploadType=media&name={name}", {})


def test_an_empty_bucket_is_deleted() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({}))
        return await engine.delete(REF), engine.cloud.call("GET", PATH).status, await engine.store.get(REF)

    assert in_kind_harness(scenario) == (Gone(), 404, None)


def test_a_bucket_with_objects_is_kept_and_reported() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({}))
        upload(engine, "precious")
        outcome = await engine.delete(REF)
        return outcome, engine.live(PATH)["name"], (await engine.resource(REF)).finalizers, await engine.ready(REF)

    outcome, name, finalizers, ready = in_kind_harness(scenario)

    error = error_in(outcome)
    assert isinstance(error, RemoteRefused)
    assert str(error) == (
        "bucket some-bucket is not empty: it holds 'precious'. Delete its objects, old versions too; or set "
        'cnrm.cloud.google.com/force-destroy: "true" to have them deleted; or '
        "cnrm.cloud.google.com/deletion-policy: abandon to leave the bucket"
    )
    assert (name, finalizers) == ("some-bucket", (FINALIZER,))
    assert ready == ("False", "DeleteFailed", f"Delete call failed: {error}")


def test_force_destroy_deletes_all_objects_and_noncurrent_versions() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({"versioning": {"enabled": True}}, annotations=FORCE))
        upload(engine, *[f"folder/{number}%3F" for number in range(30)], "twice", "twice")
        return await engine.delete(REF), engine.cloud.call("GET", PATH).status

    assert in_kind_harness(scenario) == (Gone(), 404)


def test_retained_objects_stop_the_deletion() -> None:
    async def scenario(engine: KindHarness) -> Any:
        await engine.settle(bucket({"retentionPolicy": {"retentionPeriod": 60}}, annotations=FORCE))
        upload(engine, "kept")
        return await engine.delete(REF)

    error = error_in(in_kind_harness(scenario))

    assert isinstance(error, RemoteRefused)
    assert "retentionPolicyNotMet" in str(error)


# --- Invalid manifests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"versionning": {"enabled": True}}, "there is no field spec.versionning; did you mean spec.versioning?"),
        (
            {"lifecycleRule": [{"action": {"type": "Delete"}, "condition": {"withState": "ANY"}}]},
            "spec.lifecycleRule[0].condition says nothing",
        ),
        ({"customPlacementConfig": {"dataLocations": ["us-east1", "US-EAST1"]}}, "has to name two regions"),
        ({"resourceID": ""}, "spec.resourceID is not a name"),
        ({"encryption": {"kmsKeyRef": {}}}, "spec.encryption.kmsKeyRef needs name or external"),
    ],
)
def test_an_invalid_spec_is_refused_before_any_request(spec: dict[str, Any], message: str) -> None:
    async def scenario(engine: KindHarness) -> Any:
        with pytest.raises(ManifestInvalid) as caught:
            check_manifest(Resource(bucket(spec)), StorageBucketKind(engine.google))
        return caught.value, await engine.settle(bucket(spec)), engine.cloud.journal.entries

    at_once, outcome, asked = in_kind_harness(scenario)

    error = error_in(outcome)
    assert isinstance(error, ManifestInvalid)
    assert message in str(error)
    assert str(at_once) == str(error)
    assert asked == ()
