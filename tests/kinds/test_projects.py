"""The Google project of a resource: where it is named, which place counts first, and what happens without one."""

from typing import Any

import pytest

from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.plan import ProjectSource, ResolvedProject
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import preview, step
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.shared.config_connector import TenantProjects
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from tests.kinds.kind_harness import KindHarness, in_kind_harness

PROJECT_ID = "cnrm.cloud.google.com/project-id"
IN_ENVIRONMENT = TenantProjects(environment={"GOOGLE_CLOUD_PROJECT": "from-environment"})
BUCKET = "storage.cnrm.cloud.google.com", "StorageBucket"


def bucket(namespace: str = "default", location: str = "", **annotations: str) -> dict[str, Any]:
    status = {"status": {"setpoint": {"location": location}}} if location else {}
    return {
        "apiVersion": "storage.cnrm.cloud.google.com/v1beta1",
        "kind": "StorageBucket",
        "metadata": {"name": "logs", "namespace": namespace, "annotations": annotations},
        "spec": {},
        **status,
    }


RECORDED = "projects/on-record/buckets/logs"


@pytest.mark.parametrize(
    ("document", "project", "source"),
    [
        (bucket("team", RECORDED, **{PROJECT_ID: "written"}), "written", ProjectSource.ANNOTATION),
        (bucket(location=RECORDED), "on-record", ProjectSource.RECORD),
        (bucket("team", RECORDED), "on-record", ProjectSource.RECORD),
        (bucket("team", "projects/team/buckets/logs"), "team", ProjectSource.NAMESPACE),
        (bucket("team"), "team", ProjectSource.NAMESPACE),
        (bucket(), "from-environment", ProjectSource.ENVIRONMENT),
    ],
)
def test_the_first_place_that_names_a_project_counts(
    document: dict[str, Any], project: str, source: ProjectSource
) -> None:
    assert IN_ENVIRONMENT.resolve(Resource(document)) == ResolvedProject(project, source)


@pytest.mark.parametrize(
    ("tenant", "source"),
    [
        (Tenant("default", "default"), ResolvedProject("default", ProjectSource.NAMESPACE)),
        (
            Tenant("default", "of-team", default_project="of-team"),
            ResolvedProject("of-team", ProjectSource.NAMESPACE_ANNOTATION),
        ),
        (Tenant("default", None, default_project="own"), ResolvedProject("own", ProjectSource.NAMESPACE_ANNOTATION)),
    ],
)
def test_in_a_cluster_the_namespace_names_the_project(tenant: Tenant, source: ResolvedProject) -> None:
    projects = TenantProjects(tenant, {"GOOGLE_CLOUD_PROJECT": "from-environment"})

    assert projects.resolve(Resource(bucket())) == source


MISSING = (
    "StorageBucket default/logs: metadata.annotations['cnrm.cloud.google.com/project-id'] is missing: write the ID of "
    "the Google project there; or put the resource into a namespace that is named like the project; or set the "
    "environment variable GOOGLE_CLOUD_PROJECT"
)


@pytest.mark.parametrize("environment", [{}, {"GOOGLE_CLOUD_PROJECT": ""}])
def test_a_project_that_is_named_nowhere_is_an_error_that_says_where_to_write_it(environment: dict[str, str]) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        TenantProjects(environment=environment).of(Resource(bucket()))

    assert str(caught.value) == MISSING


def test_an_environment_that_names_no_project_is_reported_as_such() -> None:
    with pytest.raises(ManifestInvalid) as caught:
        TenantProjects(environment={"GOOGLE_CLOUD_PROJECT": "My Project"}).of(Resource(bucket()))

    assert str(caught.value) == (
        "StorageBucket default/logs: GOOGLE_CLOUD_PROJECT is 'My Project': write the ID of a project: lower-case "
        "letters, digits and '-'"
    )


def test_a_resource_that_settled_in_a_project_stays_there_and_can_be_deleted() -> None:
    async def scenario(harness: KindHarness) -> tuple[list[ResolvedProject | None], list[str]]:
        ref = await harness.apply(bucket())
        before = _with_environment(harness, {"GOOGLE_CLOUD_PROJECT": "first"})
        plans = [await preview(ref, before)]
        assert isinstance(await step(ref, before), Settled)
        # Another shell, without the variable: nothing moves, and nothing is refused.
        later = _with_environment(harness, {"GOOGLE_CLOUD_PROJECT": "second"})
        plans += [await preview(ref, later), await preview(ref, harness.engine)]
        await harness.delete(ref)
        return [one.project for one in plans], [one.method for one in harness.writes]

    projects, writes = in_kind_harness(scenario)

    assert projects == [
        ResolvedProject("first", ProjectSource.ENVIRONMENT),
        ResolvedProject("first", ProjectSource.RECORD),
        ResolvedProject("first", ProjectSource.RECORD),
    ]
    assert writes == ["POST", "DELETE"]


def test_without_a_project_nothing_is_sent_and_the_status_says_why() -> None:
    async def scenario(harness: KindHarness) -> tuple[tuple[str, str, str], int]:
        ref = await harness.apply(bucket())
        await step(ref, harness.engine)
        return await harness.ready(ref), len(harness.writes)

    assert in_kind_harness(scenario) == (("False", "UpdateFailed", f"Update call failed: {MISSING}"), 0)


def _with_environment(harness: KindHarness, environment: dict[str, str]) -> EngineContext:
    kind = StorageBucketKind(harness.google, projects=TenantProjects(environment=environment))
    return EngineContext(harness.store, harness.clock, {BUCKET: kind})


def database(external: str, **annotations: str) -> Resource:
    return Resource(
        {
            "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
            "kind": "SQLDatabase",
            "metadata": {"name": "orders", "namespace": "default", "annotations": annotations},
            "spec": {"instanceRef": {"external": external}},
        }
    )


GOOGLE = GoogleClient(HttpClient(), GoogleSettings())


def test_a_database_is_in_the_project_of_its_instance() -> None:
    kind, none = SqlDatabaseKind(GOOGLE, projects=IN_ENVIRONMENT), ResolvedReferences()

    assert kind.project_of(database("projects/other/instances/main"), none) == ResolvedProject(
        "other", ProjectSource.REFERENCE
    )
    assert kind.project_of(database("main"), none) == ResolvedProject("from-environment", ProjectSource.ENVIRONMENT)


def test_the_project_of_a_database_may_be_missing_when_its_manifest_is_checked() -> None:
    kind = SqlDatabaseKind(GOOGLE)

    kind.check(database("main"))
    with pytest.raises(ManifestInvalid, match="write the instance's name"):
        kind.check(database("Not A Name"))
    with pytest.raises(ManifestInvalid, match="is missing: write the ID of the Google project"):
        kind.locate(database("main"), ResolvedReferences())
