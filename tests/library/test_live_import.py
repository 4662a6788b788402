"""A fleet that other tools made is imported: nothing changes by it, and references are found."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import setpoint
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path as FieldPath
from setpoint.engine.importing.minimal_spec import external_references
from setpoint.engine.importing.proof import ImportOutcome
from setpoint.library.inspection.live_import import ImportedManifest, ImportQuery, LiveImport
from setpoint.library.selecting.field_selector import FieldSelector
from setpoint.library.selecting.label_selector import LabelSelector
from setpoint.localcloud.faults import DropConnection, FailRequest
from tests.library.fleets import FLEET_PROJECT, FLEET_REGION, fleet, manifest
from tests.library.worlds import World, world

# How many of each of the kinds below.
_EACH: Final = 12
# The roles in each policy that another tool has set.
_POLICIES: Final = {
    "/storage/v1/b/shop-1/iam": ("roles/storage.objectViewer", "roles/storage.admin"),
    f"/pubsub.googleapis.com/v1/projects/{FLEET_PROJECT}/topics/shop-1:setIamPolicy": ("roles/pubsub.publisher",),
    f"/cloudresourcemanager.googleapis.com/v1/projects/{FLEET_PROJECT}:setIamPolicy": ("roles/logging.viewer",),
}


@asynccontextmanager
async def _google() -> AsyncIterator[World]:
    async with world() as found:
        yield found


def _open(world: World) -> setpoint.Session:
    """A session on a new store in memory."""
    return world.open(environment={**world.environment, "SETPOINT_GOOGLE_ENDPOINT": world.cloud.url})


async def _import(world: World, query: ImportQuery) -> LiveImport:
    async with _open(world) as session:
        return await session.import_live(query)


def _spec(one: ImportedManifest) -> JsonObject:
    found = one.manifest["spec"]
    assert isinstance(found, dict)
    return found


def test_a_fleet_of_300_objects_is_imported_and_nothing_changes() -> None:
    asyncio.run(_import_fleet())


async def _import_fleet() -> None:
    async with _google() as world:
        made = [one for number in range(_EACH) for one in fleet(number)]
        kinds = tuple(sorted({one["kind"] for one in made}))
        async with _open(world) as session:
            (await session.apply(made)).raise_for_failures()

        query = ImportQuery(FLEET_PROJECT, kinds, (FLEET_REGION, f"{FLEET_REGION}-b"))
        found = await _import(world, query)

        assert (len(made), len(kinds)) == (300, 25)
        assert [(one.ref, one.outcome, one.fields) for one in found.manifests if one.outcome != "unchanged"] == []
        # And the database and the user that each instance comes with.
        assert len(found.manifests) == 300 + 2 * _EACH
        assert (found.skipped, dict(found.unlisted), found.global_only, found.exit_code) == ((), {}, (), 0)
        literal = [
            (str(one.ref), str(path), text)
            for one in found.manifests
            for path, text in external_references(_spec(one), FieldPath(("spec",)))
            if path.steps[-1] != "projectRef"
        ]
        assert literal == []

        before = world.writes
        async with _open(world) as session:
            planned = await session.plan([one.manifest for one in found.manifests])
            applied = await session.apply([one.manifest for one in found.manifests])
            again = await session.plan()
        assert {one.outcome.value for one in planned} == {"unchanged"}
        assert {one.outcome.value for one in applied} == {"adopted"}
        assert again.is_done
        assert world.writes == before


def test_what_is_declared_is_left_out_and_selectors_choose() -> None:
    asyncio.run(_import_some())


async def _import_some() -> None:
    async with _google() as world:
        bucket, instance, database, user = fleet(1)[:4]
        async with _open(world) as session:
            (await session.apply(bucket, instance, database, user)).raise_for_failures()
        kinds = ("StorageBucket", "SQLDatabase", "SQLUser")

        named = ImportQuery(FLEET_PROJECT, kinds, fields=FieldSelector.parse("metadata.name=shop-*"))
        labelled = ImportQuery(FLEET_PROJECT, kinds, labels=LabelSelector.parse("team=web"))
        assert [str(one.ref) for one in (await _import(world, labelled)).manifests] == ["StorageBucket default/shop-1"]
        found = (await _import(world, named)).manifests
        # The instance is found without being asked for, and it is not declared: nothing refers to it by name.
        assert [(str(one.ref), _spec(one).get("instanceRef")) for one in found] == [
            ("SQLDatabase default/shop-1", {"external": "projects/some-project/instances/shop-1"}),
            ("SQLUser default/shop-1", {"external": "projects/some-project/instances/shop-1"}),
            ("StorageBucket default/shop-1", None),
        ]
        assert ("sesame" in str(found), found[1].secrets) == (False, ("spec.password",))

        async with _open(world) as session:
            (await session.apply(instance, bucket)).raise_for_failures()
            among = await session.import_live(named)
        # What is declared is named, and is not declared twice.
        assert [(one.kind, str(one.declared)) for one in among.skipped] == [
            ("StorageBucket", "StorageBucket default/shop-1")
        ]
        assert [_spec(one)["instanceRef"] for one in among.manifests] == [{"name": "shop-1"}] * 2
        assert {one.outcome for one in among.manifests} == {ImportOutcome.UNCHANGED}


def test_objects_of_every_region_and_zone_are_found_without_naming_them() -> None:
    asyncio.run(_import_everywhere())


async def _import_everywhere() -> None:
    async with _google() as world:
        rings = ("KMSKeyRing", "KMSCryptoKey", "ArtifactRegistryRepository")
        kinds = (*rings, "ComputeNetwork", "ComputeSubnetwork", "ComputeAddress", "ComputeDisk", "ComputeRouter")
        made = [one for one in fleet(1) if one["kind"] in kinds]
        made.append(manifest("compute", "ComputeAddress", "world-wide", {"location": "global"}))
        made.append(manifest("compute", "ComputeAddress", "shop-1-us", {"location": "us-east1"}))
        async with _open(world) as session:
            (await session.apply(made)).raise_for_failures()

        found = await _import(world, ImportQuery(FLEET_PROJECT, kinds, ("-",)))

        assert (found.skipped, dict(found.unlisted), found.exit_code) == ((), {}, 0)
        assert sorted(one.location for one in found.manifests) == [
            "projects/some-project/global/addresses/world-wide",
            "projects/some-project/global/networks/shop-1",
            "projects/some-project/locations/europe-west1/keyRings/shop-1",
            "projects/some-project/locations/europe-west1/keyRings/shop-1/cryptoKeys/shop-1",
            "projects/some-project/locations/europe-west1/repositories/shop-1",
            "projects/some-project/regions/europe-west1/addresses/shop-1",
            "projects/some-project/regions/europe-west1/routers/shop-1",
            "projects/some-project/regions/europe-west1/subnetworks/shop-1",
            "projects/some-project/regions/us-east1/addresses/shop-1-us",
            "projects/some-project/zones/europe-west1-b/disks/shop-1",
        ]
        # One list has those of all regions.
        assert len([one for one in world.cloud.journal.entries if "/aggregated/addresses" in one.path]) == 1


def test_what_is_in_no_project_is_found_by_its_parent() -> None:
    asyncio.run(_import_of_parent())


async def _import_of_parent() -> None:
    async with _google() as world:
        inside = {"organizationRef": {"external": "organizations/42"}}
        made = [
            manifest("resourcemanager", "Folder", "web", {"displayName": "Web", **inside}),
            manifest("resourcemanager", "Folder", "other", {"displayName": "Other", "folderRef": {"external": "7"}}),
            manifest("logging", "LoggingLogSink", "errors", {**_SINK, **inside}),
        ]
        async with _open(world) as session:
            (await session.apply(made)).raise_for_failures()

        query = ImportQuery(FLEET_PROJECT, ("Folder", "LoggingLogSink"), parent="organizations/42")
        found = await _import(world, query)

        assert (found.skipped, dict(found.unlisted)) == ((), {})
        assert [(one.ref.kind, one.outcome.value, _spec(one).get("organizationRef")) for one in found.manifests] == [
            ("LoggingLogSink", "unchanged", {"external": "organizations/42"}),
            ("Folder", "unchanged", {"external": "organizations/42"}),
        ]


_SINK: Final = {
    "destination": {"storageBucketRef": {"external": "storage.googleapis.com/logs"}},
    "filter": "severity>=ERROR",
}


def test_policies_of_what_is_imported_and_of_the_project_are_imported_and_nothing_changes() -> None:
    asyncio.run(_import_policies())


async def _import_policies() -> None:
    async with _google() as world:
        made = {one["kind"]: one for one in fleet(1)}
        bucket, topic, account = made["StorageBucket"], made["PubSubTopic"], made["IAMServiceAccount"]
        async with _open(world) as session:
            (await session.apply(bucket, topic, account)).raise_for_failures()
        member: dict[str, Any] = {"role": "roles/logging.viewer", "members": ["user:jo@example.com"]}
        condition: dict[str, Any] = {"title": "until", "expression": "request.time < timestamp('2030-01-01T00:00:00Z')"}
        for path, roles in _POLICIES.items():
            bindings = [{**member, "role": role} for role in roles]
            bindings[0] |= {"condition": condition} if "cloudresourcemanager" in path else {}
            policy = {"bindings": bindings, "version": 3}
            is_bucket = path.endswith("/iam")
            answer = world.cloud.call("PUT" if is_bucket else "POST", path, policy if is_bucket else {"policy": policy})
            assert answer.status == 200, answer

        kinds = ("IAMPolicy", "StorageBucket", "PubSubTopic", "IAMServiceAccount")
        found = await _import(world, ImportQuery(FLEET_PROJECT, kinds))
        everything = await _import(world, ImportQuery(FLEET_PROJECT))

        policies = {one.ref.name: one for one in found.manifests if one.ref.kind == "IAMPolicy"}
        assert {one.outcome for one in found.manifests} == {ImportOutcome.UNCHANGED}
        assert {name: _spec(one)["resourceRef"] for name, one in policies.items()} == {
            "storagebucket-shop-1": {"kind": "StorageBucket", "name": "shop-1"},
            "pubsubtopic-shop-1": {"kind": "PubSubTopic", "name": "shop-1"},
            f"project-{FLEET_PROJECT}": {"kind": "Project", "external": f"projects/{FLEET_PROJECT}"},
        }
        assert _spec(policies[f"project-{FLEET_PROJECT}"])["bindings"] == [{**member, "condition": condition}]
        assert [one for one in everything.manifests if one.ref.kind == "IAMPolicy"] == []
        world.cloud.journal.clear()
        async with _open(world) as session:
            applied = await session.apply([one.manifest for one in found.manifests])
            again = await session.plan()
        assert {one.outcome.value for one in applied} == {"adopted"}
        assert again.is_done
        # The policy of a project is read by POST.
        posted = [one.path for one in world.cloud.journal.entries if one.method != "GET"]
        assert {path.rpartition(":")[2] for path in posted} == {"getIamPolicy"}


def test_a_service_that_is_busy_for_a_moment_leaves_nothing_out() -> None:
    asyncio.run(_import_from_a_busy_service())


async def _import_from_a_busy_service() -> None:
    async with _google() as world:
        made = [one for number in (1, 2) for one in fleet(number)[:4]]
        async with _open(world) as session:
            (await session.apply(made)).raise_for_failures()
        world.cloud.inject(FailRequest(503))
        world.cloud.inject(FailRequest(429, path="/users"))
        world.cloud.inject(FailRequest(500, path="/instances/shop-1$"))
        world.cloud.inject(DropConnection(path="/databases"))

        found = await _import(
            world, ImportQuery(FLEET_PROJECT, ("StorageBucket", "SQLInstance", "SQLDatabase", "SQLUser"))
        )

        assert (dict(found.unlisted), found.exit_code, len(found.manifests)) == ({}, 0, 8 + 2 * 2)
        world.cloud.inject(FailRequest(503))
        async with _open(world) as session:
            assert {one.outcome.value for one in await session.plan([one.manifest for one in found.manifests])} == {
                "unchanged"
            }
