"""What the API shows of a store: rows, details, graph, fields, timeline, plan, search; and what actions do."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tests.dashboard.pages import dashboard_on
from tests.library.worlds import bucket, database, until, world

BUCKET = "StorageBucket.storage.cnrm.cloud.google.com/default/logs"
DATABASE = "SQLDatabase.sql.cnrm.cloud.google.com/default/app"
INSTANCE = "SQLInstance.sql.cnrm.cloud.google.com/default/db"
SETTINGS = "KubernetesObject.setpoint.dev/default/settings"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_resource_is_a_row_with_its_state() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), database("app", "db"), wait=False)
            async with dashboard_on(session) as page:
                found = await page.get("/resources")

                assert [(one["id"], one["state"], one["reason"]) for one in found["resources"]] == [
                    (DATABASE, "blocked", "DependencyNotFound"),
                    (BUCKET, "ready", "UpToDate"),
                ]
                assert (found["total"], found["next"]) == (2, None)

    run(main())


def test_drift_under_observe_is_shown_and_needs_attention() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), bucket("same"))
            observed = [bucket("logs", versioning={"enabled": True}), bucket("same")]
            for one in observed:
                one["metadata"]["annotations"]["setpoint.dev/management"] = "observe"
            await session.apply(*observed)
            after = bucket("after")
            after["metadata"]["annotations"]["setpoint.dev/depends-on"] = "StorageBucket/logs,StorageBucket/same"
            await session.apply(after, wait=False)
            async with dashboard_on(session) as page:
                found = (await page.get("/resources"))["resources"]

                assert [(one["name"], one["state"], one["drifted"]) for one in found] == [
                    ("after", "blocked", False),
                    ("logs", "observed", True),
                    ("same", "observed", False),
                ]
                pressing = (await page.get("/summary"))["attention"]
                assert [one["id"] for one in pressing] == [BUCKET.replace("logs", "after"), BUCKET]
                edges = {one["to"]: (one["state"], one["isBlocking"]) for one in (await page.get("/graph"))["edges"]}
                assert edges == {BUCKET: ("notReady", True), BUCKET.replace("logs", "same"): ("ready", False)}

    run(main())


def test_pages_of_rows_have_every_row_once() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(*[bucket(f"logs{number}") for number in range(5)], wait=False)
            async with dashboard_on(session) as page:
                names: list[str] = []
                cursor: Any = "0"
                while cursor is not None:
                    found = await page.get(f"/resources?limit=2&cursor={cursor}")
                    names += [one["name"] for one in found["resources"]]
                    cursor = found["next"]

                assert names == ["logs0", "logs1", "logs2", "logs3", "logs4"]

    run(main())


def test_the_summary_counts_states_and_names_what_needs_attention() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), database("app", "db"), wait=False)
            async with dashboard_on(session) as page:
                found = await page.get("/summary")

                assert found["byState"] == {"ready": 1, "blocked": 1}
                assert [one["id"] for one in found["attention"]] == [DATABASE]
                assert found["process"] is None

    run(main())


def test_the_graph_shows_what_a_blocked_resource_waits_for() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(database("app", "db"), wait=False)
            async with dashboard_on(session) as page:
                found = await page.get("/graph")

                assert {one["id"]: one["exists"] for one in found["nodes"]} == {DATABASE: True, INSTANCE: False}
                (edge,) = found["edges"]
                assert (edge["from"], edge["to"], edge["state"]) == (DATABASE, INSTANCE, "missing")
                assert (edge["path"], edge["isBlocking"]) == ("spec.instanceRef", True)

    run(main())


def config_map(name: str, **data: Any) -> dict[str, Any]:
    """A KubernetesObject; no cluster is there to make it."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    spec = {"manifest": manifest, "waitFor": {"field": "data"}}
    return {
        "apiVersion": "setpoint.dev/v1alpha1",
        "kind": "KubernetesObject",
        "metadata": {"name": name},
        "spec": spec,
    }


def ref(kind: str, name: str, path: str) -> dict[str, Any]:
    return {"$ref": {"kind": kind, "name": name, "path": path}}


def test_an_edge_shows_the_value_that_flows_along_it() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            values = {
                "known": ref("StorageBucket", "logs", "status.url"),
                "no": ref("KubernetesObject", "other", "data.a"),
            }
            await session.apply(bucket(), config_map("other", a="b"), config_map("settings", **values), wait=False)
            async with dashboard_on(session) as page:
                edges = {one["path"]: one for one in (await page.get("/graph"))["edges"]}

                known, unknown = edges["spec.manifest.data.known.$ref"], edges["spec.manifest.data.no.$ref"]
                assert (known["from"], known["to"], known["output"]) == (SETTINGS, BUCKET, "status.url")
                assert (known["state"], known["value"]) == ("known", "gs://logs")
                assert (unknown["state"], unknown["value"], unknown["isBlocking"]) == ("unknown", None, True)
                (row,) = [one for one in (await page.get("/resources"))["resources"] if one["id"] == SETTINGS]
                assert "data.a of KubernetesObject default/other: it is not ready (UpdateFailed)" in row["message"]

    run(main())


def test_a_graph_with_a_focus_has_its_surroundings_alone() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), database("app", "db"), wait=False)
            async with dashboard_on(session) as page:
                found = await page.get(f"/graph?focus={INSTANCE}&depth=1")

                assert sorted(one["id"] for one in found["nodes"]) == [DATABASE, INSTANCE]

    run(main())


def test_the_details_have_what_explain_and_describe_show() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            async with dashboard_on(session) as page:
                found = await page.get(f"/resources/{BUCKET}")

                assert found["row"]["state"] == "ready"
                assert found["manifest"]["spec"] == {"location": "EU"}
                assert found["location"] == "projects/some-project/buckets/logs"
                assert (found["lastStep"]["decision"], found["lastStep"]["trigger"]) == ("create", "setpoint apply")
                assert [one["reason"] for one in found["events"]] == ["Created"]

    run(main())


def test_fields_have_the_rule_that_decides_each() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            here.cloud.edit("/b/logs", {"storageClass": "NEARLINE"})
            writes = here.writes
            async with dashboard_on(session) as page:
                found = await page.get(f"/resources/{BUCKET}/fields")
                fields = {one["path"]: one for one in found["fields"]}

                assert fields["spec.location"]["rule"] == "spec"
                assert fields["spec.softDeletePolicy.retentionDurationSeconds"]["rule"] == "protected"
                drifted = fields["spec.storageClass"]
                assert (drifted["rule"], drifted["differs"]) == ("default", True)
                assert (drifted["live"], drifted["desired"], "spec" in drifted) == ("NEARLINE", "STANDARD", False)
                assert found["liveObject"]["spec"]["storageClass"] == "NEARLINE"
                assert here.writes == writes

    run(main())


def test_the_fields_of_an_object_that_cannot_be_compared_yet_are_those_of_the_spec() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            spec = {"databaseVersion": "MYSQL_8_0", "region": "europe-west1", "settings": {"tier": "db-n1-standard-1"}}
            group = "sql.cnrm.cloud.google.com/v1beta1"
            await session.apply({**bucket("db"), "apiVersion": group, "kind": "SQLInstance", "spec": spec}, wait=False)
            async with dashboard_on(session) as page:
                found = await page.get(f"/resources/{INSTANCE}/fields")

                assert found["trouble"] == "instance db is still being made"
                assert {one["path"]: one["spec"] for one in found["fields"]}["spec.region"] == "europe-west1"

    run(main())


def test_the_timeline_of_a_correction_has_the_drift_the_write_and_its_request(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here, here.open() as session:
            await session.apply(bucket())
            here.cloud.edit("/b/logs", {"storageClass": "NEARLINE"})
            await session.reconcile("StorageBucket/logs")
            async with dashboard_on(session) as page:
                found = await page.get(f"/resources/{BUCKET}/timeline")
                steps = [one for one in found["entries"] if one["type"] == "step"]

                assert [one["decision"] for one in steps] == ["drifted", "create"]
                assert {"path": "spec.storageClass", "before": "NEARLINE", "after": "STANDARD", "why": "default"} in (
                    steps[0]["fields"]
                )
                assert [one["path"] for one in found["heat"]] == ["spec.storageClass"]
                first = await page.get(f"/resources/{BUCKET}/timeline?limit=1")
                rest = await page.get(f"/resources/{BUCKET}/timeline?before={first['next']}")
                assert [one["decision"] for one in rest["entries"]] == ["create"]

    run(main())


def test_a_plan_of_all_says_what_would_be_written_and_writes_nothing() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket(), bucket("other"))
            here.cloud.edit("/b/logs", {"storageClass": "NEARLINE"})
            writes = here.writes
            async with dashboard_on(session) as page:
                assert (await page.get("/plan"))["madeAt"] is None
                assert (await page.post("/plan")).status == 202
                await until(lambda: not page.backend.plans.is_running)
                found = await page.get("/plan")

                assert found["counts"] == {"create": 0, "update": 1, "delete": 0, "nothing": 1, "failed": 0}
                (changed,) = [one for one in found["resources"] if one["action"] == "update"]
                assert [one["path"] for one in changed["fields"]] == ["spec.storageClass"]
                assert here.writes == writes

    run(main())


def test_a_search_finds_names_labels_paths_and_values() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            labelled = bucket("other")
            labelled["metadata"]["labels"] = {"team": "billing"}
            await session.apply(bucket(storageClass="NEARLINE"), labelled, wait=False)
            async with dashboard_on(session) as page:
                words = (
                    "nearline",
                    "spec.storageclass=near",
                    "team=billing",
                    "metadata.labels.team",
                    "logs eu",
                    "none",
                )
                found = {word: (await page.get(f"/search?q={word.replace(' ', '%20')}"))["ids"] for word in words}

                other = BUCKET.replace("logs", "other")
                assert found == {
                    "nearline": [BUCKET],
                    "spec.storageclass=near": [BUCKET],
                    "team=billing": [other],
                    "metadata.labels.team": [other],
                    "logs eu": [BUCKET],
                    "none": [],
                }

    run(main())


def test_pause_and_resume_change_the_annotation_alone() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            before = (await session.get("StorageBucket/logs")).document
            async with dashboard_on(session) as page:
                assert (await page.post(f"/resources/{BUCKET}/actions/pause")).status == 202
                paused = await session.get("StorageBucket/logs")
                assert (await page.post(f"/resources/{BUCKET}/actions/resume")).status == 202
                resumed = await session.get("StorageBucket/logs")

                assert paused.resource.annotations["setpoint.dev/management"] == "paused"
                assert paused.spec == resumed.spec == before["spec"]
                assert resumed.resource.annotations == before["metadata"]["annotations"]  # type: ignore[index,call-overload]

    run(main())


def test_reconcile_now_corrects_drift() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            here.cloud.edit("/b/logs", {"storageClass": "NEARLINE"})
            async with dashboard_on(session) as page:
                assert (await page.post(f"/resources/{BUCKET}/actions/reconcile")).status == 202

                row = (await session.get("StorageBucket/logs")).status
                assert row["setpoint"]["step"]["decision"] == "drifted"  # type: ignore[index,call-overload]

    run(main())


def test_no_action_deletes_anything() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket())
            async with dashboard_on(session) as page:
                refused = await page.post(f"/resources/{BUCKET}/actions/delete")

                assert (refused.status, refused.code) == (403, "actionsOff")
                assert here.buckets == ["logs"]

    run(main())


def test_the_report_of_an_upgrade_is_passed_on_as_it_is() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, dashboard_on(session, upgrade_report=b'{"a":[1]}') as page:
            assert (await page.get("/session"))["hasUpgradeReport"] is True
            assert await page.get("/upgrade") == {"a": [1]}

    run(main())


def test_what_is_not_declared_is_not_found() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, dashboard_on(session) as page:
            missing = await page.send("GET", f"/api/v1/resources/{BUCKET}")

            assert (missing.status, missing.code) == (404, "notFound")

    run(main())
