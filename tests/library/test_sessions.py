"""A session does what the commands do, on a store in memory and on one in a file."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import setpoint
from setpoint import ExitCode, ResourceRef, ResultOutcome
from setpoint.errors import ManifestInvalid, ResourcesFailed, StoreInUse, UserError
from setpoint.localcloud.faults import FailRequest
from tests.library.worlds import PROJECT, World, bucket, database, world

LOGS = ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", "logs")
PROTECTED = {"setpoint.dev/management": "observe"}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.fixture(params=["memory", "file"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where the file of the store is; None for a store in memory."""
    return tmp_path if request.param == "file" else None


def test_a_session_goes_the_whole_way_from_a_plan_to_a_deletion(folder: Path | None) -> None:
    async def main() -> None:
        async with world(folder) as here, here.open() as session:
            planned = await session.plan(bucket())
            assert (planned["StorageBucket/logs"].outcome, here.buckets) == (ResultOutcome.CREATE, [])
            applied = await session.apply(bucket())
            assert (applied[0].ref, applied[0].outcome, here.buckets) == (LOGS, ResultOutcome.CREATED, ["logs"])
            again = await session.plan(bucket())
            found = again[LOGS].plan
            assert (again.is_done, found is not None and found.is_empty) == (True, True)
            here.drift()
            drifted = await session.plan("StorageBucket/logs")
            assert [one.path for one in drifted[0].changes] == ["spec.website.mainPageSuffix"]
            reconciled = await session.reconcile("storagebuckets/logs")
            assert (reconciled[0].outcome, reconciled.is_done) == (ResultOutcome.UPDATED, True)
            assert (await session.get("StorageBucket/logs")).is_ready
            assert [one.ref for one in await session.list()] == [LOGS]
            deleted = await session.delete(LOGS)
            assert (deleted[0].outcome, here.buckets, len(await session.list())) == (ResultOutcome.DELETED, [], 0)

    run(main())


def test_a_plan_writes_nothing_and_makes_no_file(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here, here.open() as session:
            result = await session.plan(bucket())

            assert (result.exit_code, here.writes, list(tmp_path.iterdir())) == (ExitCode.CHANGES, 0, [])

    run(main())


def test_a_result_has_the_fields_the_conditions_and_the_location() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            result = (await session.apply(bucket()))[0]

            assert [(one.path, one.after) for one in result.changes if one.path == "spec.location"] == [
                ("spec.location", "EU")
            ]
            assert [(one.type, one.status) for one in result.conditions] == [("Ready", "True")]
            assert (result.location, result.outputs, result.error) == (
                "projects/some-project/buckets/logs",
                setpoint.Null(),
                None,
            )

    run(main())


def test_a_resource_that_fails_is_a_result_and_an_error_only_when_asked() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            here.cloud.inject(FailRequest(403, method="POST", times=5))
            result = await session.apply(bucket())

            assert (result.exit_code, result[0].is_failed, result[0].error is None) == (ExitCode.FAILED, True, False)
            with pytest.raises(ResourcesFailed, match="StorageBucket default/logs: ") as raised:
                result.raise_for_failures()
            assert raised.value.refs == ("StorageBucket default/logs",)

    run(main())


def test_a_resource_that_waits_for_another_is_no_failure() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            result = await session.apply(database("app", "main"))

            assert (result.raise_for_failures().exit_code, result[0].outcome) == (
                ExitCode.WAITING,
                ResultOutcome.WAITING,
            )

    run(main())


def test_an_invalid_manifest_raises_and_nothing_is_declared(folder: Path | None) -> None:
    async def main() -> None:
        async with world(folder) as here, here.open() as session:
            with pytest.raises(
                ManifestInvalid, match=r"^argument 2: StorageBucket default/logs: there is no field spec\.locatio"
            ):
                await session.apply(bucket("more"), bucket(locatio="EU"))

            assert (len(await session.list()), here.buckets) == (0, [])

    run(main())


@pytest.mark.parametrize("call", ["apply", "delete"])
def test_a_call_that_names_nothing_is_refused(call: str) -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            with pytest.raises(ManifestInvalid, match=f"nothing to {call}"):
                await getattr(session, call)()

    run(main())


def test_what_was_never_declared_is_a_failure_unless_that_is_ignored() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            missing = await session.delete(LOGS)
            ignored = await session.delete(LOGS, ignore_not_found=True)

            assert (missing.failures[0].outcome, missing.is_done) == (ResultOutcome.NOT_FOUND, False)
            assert (ignored.failures, ignored.is_done) == ((), True)

    run(main())


def test_a_dry_run_of_a_deletion_deletes_nothing() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            result = await session.delete("StorageBucket/logs", dry_run=True)

            assert (result[0].outcome, here.buckets, (await session.get(LOGS)).is_ready) == (
                ResultOutcome.DELETED,
                ["logs"],
                True,
            )

    run(main())


def test_apply_without_a_wait_is_gone_on_with_by_wait() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            here.cloud.inject(FailRequest(503, method="POST", times=1))
            first = await session.apply(bucket(), wait=False)
            then = await session.wait("StorageBucket/logs", timeout="1m")

            assert (first[0].outcome, then[0].outcome, then.is_done) == (
                ResultOutcome.WAITING,
                ResultOutcome.CREATED,
                True,
            )

    run(main())


def test_a_timeout_ends_a_wait_and_raises_nothing() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            here.cloud.inject(FailRequest(503, method="POST", times=1000))
            result = await session.apply(bucket(), timeout=0.2)

            assert (result.exit_code, result.raise_for_failures().is_done) == (ExitCode.WAITING, False)

    run(main())


# --- Stores -----------------------------------------------------------------------------------------------------------


def test_a_second_writer_of_a_file_is_told_who_holds_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here, here.open() as first, here.open() as second:
            await first.apply(bucket())
            with pytest.raises(StoreInUse, match="is in use by process"):
                await second.apply(bucket("more"))

            assert [one.ref for one in await second.list()] == [LOGS]
            await first.close()
            assert (await second.apply(bucket("more"))).is_done

    run(main())


def test_the_next_session_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here:
            async with here.open() as first:
                await first.apply(bucket())
            async with here.open(store=tmp_path / "state.db") as second:
                assert ((await second.get(LOGS)).is_ready, (await second.plan()).is_done) == (True, True)

    run(main())


def test_the_environment_names_the_store_and_the_cookies(tmp_path: Path) -> None:
    async def main() -> None:
        async with world() as here:
            variables = {
                **here.environment,
                "SETPOINT_STORE": f"sqlite:///{tmp_path}/named.db",
                "SETPOINT_COOKIE_LOCATION": "annotation",
            }
            async with here.open(store=None, environment=variables) as session:
                await session.apply(bucket())
                kept = (await session.get(LOGS)).resource.annotations

                assert ((tmp_path / "named.db").exists(), "cnrm.cloud.google.com/last-changed-cookie" in kept) == (
                    True,
                    True,
                )

    run(main())


def test_an_unknown_setting_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="cookies are kept in status or annotation, not in 'nowhere'"):
        setpoint.open("memory:", cookies="nowhere", environment={})
    with pytest.raises(ManifestInvalid, match="the store 'postgres://x' is none we know"):
        setpoint.open("postgres://x", environment={})


def test_the_namespace_of_a_session_is_that_of_what_names_none() -> None:
    async def main() -> None:
        async with world() as here, here.open(namespace="web") as session:
            await session.apply(bucket())

            assert [str(one.ref) for one in await session.list("StorageBucket/logs")] == ["StorageBucket web/logs"]
            assert (await session.get("StorageBucket/logs")).ref == LOGS._replace(namespace="web")

    run(main())


def test_a_closed_session_says_so() -> None:
    async def main() -> None:
        async with world() as here:
            session = here.open()
            await session.close()
            await session.close()
            with pytest.raises(UserError, match="the session is closed: open another one"):
                await session.list()

    run(main())


def test_two_calls_at_once_take_turns() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            results = await asyncio.gather(*(session.apply(bucket(), bucket(f"b-{one}")) for one in range(3)))

            assert [one.is_done for one in results] == [True, True, True]
            assert sum(result["StorageBucket/logs"].outcome is ResultOutcome.CREATED for result in results) == 1

    run(main())


def test_a_warning_about_a_manifest_is_in_the_result() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            manifest = bucket()
            manifest["metadata"]["annotations"] = {**PROJECT, "cnrm.cloud.google.com/state-into-spec": "merge"}
            result = await session.plan(manifest)

            assert [text.partition(": ")[0] for text in result.warnings] == ["argument 1"]

    run(main())


# --- Values that are secret -------------------------------------------------------------------------------------------


def test_secret_values_are_redacted_unless_they_are_asked_for() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"app": "Sesame-1-app"}}

    async def main() -> None:
        async with world() as here, here.open() as session:
            applied = await session.apply(secret)
            shown = await session.get("Secret/s", show_secrets=True)

            assert "Sesame" not in applied.to_json() + (await session.get("Secret/s")).to_json()
            assert "U2VzYW1lLTEtYXBw" in shown.to_json() or "Sesame-1-app" in shown.to_json()

    run(main())


class Steps(setpoint.CommandObserver):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def changed(self, ref: ResourceRef, state: Any) -> None:
        self.words.append(f"{ref.name} {state.word}")


def test_an_observer_is_told_of_each_step() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            steps = Steps()
            await session.apply(bucket(), observer=steps)

            assert steps.words == ["logs created"]

    run(main())


def test_a_plan_blocks_nothing_that_other_threads_do() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.plan(bucket())
            fetch = asyncio.to_thread(_fetched, here)
            both = await asyncio.gather(session.plan(bucket()), fetch)

            assert both[1] == 200

    run(main())


def _fetched(here: World) -> int:
    from urllib.request import urlopen

    with urlopen(f"{here.cloud.url}/storage/v1/b?project=some-project") as answer:
        status: int = answer.status
    return status


# --- Calls of one session do not depend on each other ---------------------------------------------------------------


def test_an_object_can_be_claimed_once_its_former_resource_is_gone() -> None:
    other = bucket()
    other["metadata"]["namespace"] = "other"

    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            refused = await session.apply(other)
            await session.delete(LOGS)
            made = await session.apply(other)

            assert (refused.exit_code, made[0].outcome, here.buckets) == (
                ExitCode.FAILED,
                ResultOutcome.CREATED,
                ["logs"],
            )

    run(main())


def instance(**settings: Any) -> dict[str, Any]:
    """The manifest of a Cloud SQL instance."""
    return {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": "main", "annotations": dict(PROJECT)},
        "spec": {
            "databaseVersion": "MYSQL_8_0",
            "region": "europe-west1",
            "settings": {"tier": "db-n1-standard-1", **settings},
        },
    }


def test_a_call_that_ended_with_an_operation_under_way_holds_up_no_later_call() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(instance())
            here.cloud.clock.hold()
            first = await session.apply(instance(tier="db-n1-standard-2"), timeout=0.5)
            here.cloud.advance(3600)
            here.cloud.clock.release()
            other = database("app", "main")
            other["spec"]["instanceRef"] = {"external": "main"}
            second = await session.apply(other, timeout=60)

            assert (first.exit_code, second.exit_code) == (ExitCode.WAITING, ExitCode.DONE)

    run(main())
