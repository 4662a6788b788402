"""With a tenant, the kinds of Google name one project alone, however a manifest writes another one."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import AnyKind, Intent, Location, RemoteOperation, ResolvedReferences, observe_decoded
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import SupportsTenants, Tenant
from setpoint.errors import ProjectRefused, SetpointError
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance.kind import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from tests.clients.scripted_http import ScriptedHttp, response

TENANT = Tenant("team", "own", default_project="own")
PROJECT = "cnrm.cloud.google.com/project-id"
SQL, STORAGE = "sql.cnrm.cloud.google.com/v1beta1", "storage.cnrm.cloud.google.com/v1beta1"
INSTANCE: dict[str, Any] = {"databaseVersion": "MYSQL_8_0", "region": "r", "settings": {"tier": "db-custom-1-3840"}}


class NoService(HttpClient):
    """Nothing may be asked."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        raise AssertionError(f"{request} was sent")


def kind_of(resource: Resource, tenant: Tenant | None, http: HttpClient | None = None) -> AnyKind:
    google = GoogleClient(http or NoService(), GoogleSettings("http://sql", "http://storage"))
    kinds: dict[str, AnyKind] = {
        "SQLInstance": SqlInstanceKind(google),
        "SQLDatabase": SqlDatabaseKind(google),
        "SQLUser": SqlUserKind(google),
        "StorageBucket": StorageBucketKind(google),
    }
    kind = kinds[resource.ref.kind]
    assert isinstance(kind, SupportsTenants)
    return kind if tenant is None else kind.for_tenant(tenant)


def declared(kind: str, spec: Any, *, namespace: str = "team", **more: Any) -> Resource:
    api = STORAGE if kind == "StorageBucket" else SQL
    metadata = {"name": "thing", "namespace": namespace, **more}
    return Resource({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})


def intent_for(
    resource: Resource, tenant: Tenant | None = TENANT, resolved: ResolvedReferences | None = None
) -> Intent:
    intent = intent_of(resource, kind_of(resource, tenant), resolved or ResolvedReferences())
    _ = intent.declared
    return intent


def instance_with(**spec: Any) -> Resource:
    return declared("SQLInstance", {**INSTANCE, **spec})


def within(external: str, kind: str = "SQLDatabase") -> Resource:
    return declared(kind, {"instanceRef": {"external": external}})


# Every way in which a manifest can name an instance of another project.
FOREIGN = (
    "other:db",
    "projects/other/instances/db",
    "https://sqladmin.googleapis.com/sql/v1beta4/projects/other/instances/db",
    "https://www.googleapis.com/sql/v1beta4/projects/other/instances/db",
    "//sqladmin.googleapis.com/projects/other/instances/db",
    "HTTPS://sqladmin.googleapis.com/v1/projects/other/instances/db",
    "https://x/projects/own/instances/db/projects/other/instances/db",
    "projects/OWN/instances/db",
    "projects/own%2F..%2Fother/instances/db",
    "projects/123456789012/instances/db",
    "example.com:other:db",
    "own:x:db",
    " other:db",
    "other\uff1adb:x",
    "xprojects/other/instances/db",
)
ANNOTATED = [
    declared("SQLInstance", INSTANCE, annotations={PROJECT: "other"}),
    declared("StorageBucket", {"location": "EU"}, annotations={PROJECT: "other"}),
    declared("SQLDatabase", {"instanceRef": {"external": "db"}}, annotations={PROJECT: "other"}),
    declared("SQLUser", {"instanceRef": {"external": "db"}}, annotations={PROJECT: "other"}),
    declared("SQLUser", {"instanceRef": {"external": "projects/own/instances/db"}}, annotations={PROJECT: "owns"}),
]
NETWORK = "projects/other/global/networks/vpc"
_NETWORK_SOURCE = {"networkRef": {"external": NETWORK}, "allowedIpCidrRanges": ["10.0.0.0/8"]}


@pytest.mark.parametrize("resource", ANNOTATED, ids=lambda one: one.ref.kind)
def test_the_annotation_of_a_resource_names_no_other_project(resource: Resource) -> None:
    named = resource.annotations[PROJECT]

    with pytest.raises(ProjectRefused) as caught:
        intent_for(resource)

    assert str(caught.value) == (
        f"{resource.ref}: metadata.annotations['cnrm.cloud.google.com/project-id'] names the project '{named}', and "
        "resources of the namespace team are in the project 'own'; leave it out; or an administrator sets the project "
        "of the namespace by the annotation cnrm.cloud.google.com/project-id of its Namespace, or runs setpoint with "
        "--tenancy single, where all namespaces belong to one tenant"
    )


@pytest.mark.parametrize("external", FOREIGN)
@pytest.mark.parametrize("kind", ["SQLDatabase", "SQLUser"])
def test_what_is_in_an_instance_is_in_one_of_the_tenant(external: str, kind: str) -> None:
    try:
        location = intent_for(within(external, kind)).location
    except SetpointError:
        return

    assert location.startswith("projects/own/instances/")


@pytest.mark.parametrize("external", FOREIGN)
@pytest.mark.parametrize(
    "spec",
    [
        lambda ref: {"masterInstanceRef": ref},
        lambda ref: {"replicationCluster": {"failoverDrReplicaRef": ref}},
        lambda ref: {"cloneSource": {"sqlInstanceRef": ref}},
    ],
    ids=["replica", "failover", "clone"],
)
def test_an_instance_has_no_other_tenants_data(external: str, spec: Any) -> None:
    with pytest.raises(ProjectRefused):
        intent_for(instance_with(**spec({"external": external})))


@pytest.mark.parametrize(
    "external", ["db", "own:db", "projects/own/instances/db", "https://h/v1/projects/own/instances/db"]
)
def test_an_instance_of_the_own_project_is_named_in_any_form(external: str) -> None:
    spec: Any = intent_for(instance_with(masterInstanceRef={"external": external})).declared.tree["spec"]

    assert spec["masterInstanceRef"] == {"external": "own:db"}


@pytest.mark.parametrize(
    "resource",
    [
        instance_with(settings={"tier": "t", "ipConfiguration": {"privateNetworkRef": {"external": NETWORK}}}),
        declared(
            "StorageBucket",
            {"ipFilter": {"mode": "Enabled", "vpcNetworkSources": [_NETWORK_SOURCE]}},
        ),
    ],
    ids=["instance", "bucket"],
)
def test_a_network_is_one_of_the_tenant_or_shared_with_it(resource: Resource) -> None:
    shared = Tenant("team", "own", shared_projects=frozenset({"other"}))

    with pytest.raises(ProjectRefused, match="an administrator lists further projects in the annotation"):
        intent_for(resource)

    intent_for(resource, shared)


@pytest.mark.parametrize(
    "link",
    [
        "https://x/projects/own/projects/other/global/networks/vpc",
        "projects%2Fother%2Fglobal%2Fnetworks%2Fvpc",
        "other:vpc",
        "projects/own/global/networks/../../../other/global/networks/vpc",
    ],
)
def test_a_network_whose_project_cannot_be_told_is_refused(link: str) -> None:
    resource = instance_with(settings={"tier": "t", "ipConfiguration": {"privateNetworkRef": {"external": link}}})

    with pytest.raises(ProjectRefused):
        intent_for(resource)


def test_a_key_of_another_project_is_left_to_iam() -> None:
    key = "projects/keys/locations/l/keyRings/r/cryptoKeys/k"
    resource = declared("StorageBucket", {"encryption": {"kmsKeyRef": {"external": key}}})

    spec: Any = intent_for(resource).declared.tree["spec"]

    assert spec["encryption"] == {"kmsKeyRef": {"external": key}}


def test_an_instance_of_another_namespace_is_in_the_project_on_record() -> None:
    database = declared("SQLDatabase", {"instanceRef": {"name": "db", "namespace": "their"}})
    status = {"setpoint": {"location": "projects/other/instances/db"}}
    # Whatever the resource over there says.
    theirs = declared("SQLInstance", INSTANCE, namespace="their", annotations={PROJECT: "own"})
    resolved = ResolvedReferences({"spec.instanceRef": Resource({**theirs.document, "status": status})})

    with pytest.raises(ProjectRefused, match=r"spec\.instanceRef names the project 'other'"):
        intent_for(database, resolved=resolved)


def test_without_an_annotation_the_namespace_names_the_project() -> None:
    bucket = declared("StorageBucket", {"location": "EU"})

    assert intent_for(bucket).location == "projects/own/buckets/thing"
    assert intent_for(bucket, Tenant("team", default_project="theirs")).location == "projects/theirs/buckets/thing"
    assert intent_for(bucket, Tenant("team")).location == "projects/team/buckets/thing"
    assert intent_for(bucket, None).location == "projects/team/buckets/thing"


@given(st.text(max_size=60), st.sampled_from(["SQLDatabase", "SQLUser"]))
def test_whatever_names_an_instance_it_is_one_of_the_tenant_or_refused(external: str, kind: str) -> None:
    try:
        location = intent_for(within(external, kind)).location
    except SetpointError:
        return

    assert location.startswith("projects/own/instances/")


# --- What is on record ------------------------------------------------------------------------------------------------

RECORDED = [
    (instance_with(), "projects/other/instances/db"),
    (within("db"), "projects/other/instances/db/databases/d"),
    (within("db", "SQLUser"), "projects/other/instances/db/users/u"),
    (declared("StorageBucket", {"location": "EU"}), "projects/other/buckets/vault"),
]


@pytest.mark.parametrize(("resource", "location"), RECORDED, ids=lambda one: str(one) if isinstance(one, str) else "")
def test_an_object_on_record_in_another_project_is_not_asked_for(resource: Resource, location: str) -> None:
    kind = kind_of(resource, TENANT)

    with pytest.raises(ProjectRefused) as caught:
        asyncio.run(observe_decoded(Location(location), kind))

    assert "is in the project 'other', and resources of this namespace are in 'own'" in str(caught.value)
    assert "deletion-policy: abandon" in str(caught.value)


@pytest.mark.parametrize("resource", [one for one, _ in RECORDED[:3]], ids=lambda one: one.ref.kind)
def test_an_operation_on_record_in_another_project_is_not_polled(resource: Resource) -> None:
    with pytest.raises(ProjectRefused):
        asyncio.run(kind_of(resource, TENANT).poll(RemoteOperation("projects/other/operations/o")))


@pytest.mark.parametrize("resource", [one for one, _ in RECORDED[:3]], ids=lambda one: one.ref.kind)
@pytest.mark.parametrize("name", ["other/operations/o", "projects", "projects/own/operations/../../other/operations/o"])
def test_a_text_on_record_that_is_no_operation_is_not_asked_for(resource: Resource, name: str) -> None:
    http = ScriptedHttp()

    assert asyncio.run(kind_of(resource, TENANT, http).poll(RemoteOperation(name)))
    assert http.requests == []


# --- Buckets ----------------------------------------------------------------------------------------------------------

VAULT = Location("projects/own/buckets/vault")


def live(number: str, name: str = "vault") -> JsonObject:
    return {"name": name, "metageneration": "1", "projectNumber": number, "location": "EU", "storageClass": "STANDARD"}


def listed(*buckets: JsonObject) -> HttpResponse:
    return response(200, {"kind": "storage#buckets", "items": list(buckets)})


def paths(http: ScriptedHttp) -> list[str]:
    return [one.url.partition("?alt")[0].partition("&alt")[0] for one in http.requests]


def bucket_kind(http: HttpClient, tenant: Tenant | None = TENANT) -> AnyKind:
    return kind_of(declared("StorageBucket", {"location": "EU"}), tenant, http)


def test_a_bucket_is_shown_to_be_the_projects_own_by_its_list() -> None:
    http = ScriptedHttp(
        response(200, live("11")), listed(live("11", "vault-2"), live("11")), response(200, live("11", "x"))
    )
    kind = bucket_kind(http)

    async def main() -> None:
        await observe_decoded(VAULT, kind)
        # The number of the project is known by now.
        await observe_decoded(Location("projects/own/buckets/x"), kind)

    asyncio.run(main())
    assert paths(http) == [
        "http://storage/storage/v1/b/vault",
        "http://storage/storage/v1/b?project=own&prefix=vault&maxResults=1000",
        "http://storage/storage/v1/b/x",
    ]


@pytest.mark.parametrize("items", [(), (live("11", "vault-2"),), (live("11"),)], ids=["none", "longer", "replaced"])
def test_a_bucket_of_another_project_is_refused(items: tuple[JsonObject, ...]) -> None:
    http = ScriptedHttp(response(200, live("22")), listed(*items))

    with pytest.raises(ProjectRefused) as caught:
        asyncio.run(observe_decoded(VAULT, bucket_kind(http)))

    assert str(caught.value) == (
        "the bucket vault belongs to another project than 'own', which is that of the namespace team: choose another "
        "spec.resourceID; or an administrator has it kept in the namespace of its project"
    )


def test_a_bucket_that_another_project_made_anew_under_its_name_is_refused() -> None:
    http = ScriptedHttp(response(200, live("11")), listed(live("11")), response(200, live("22")))
    kind = bucket_kind(http)

    async def main() -> None:
        await observe_decoded(VAULT, kind)
        with pytest.raises(ProjectRefused):
            await observe_decoded(VAULT, kind)

    asyncio.run(main())
    assert len(http.requests) == 3


def test_a_bucket_without_the_number_of_its_project_is_refused() -> None:
    http = ScriptedHttp(response(200, {**live("11"), "projectNumber": ""}), listed(live("11")))

    with pytest.raises(ProjectRefused):
        asyncio.run(observe_decoded(VAULT, bucket_kind(http)))


@pytest.mark.parametrize("tenant", [None, Tenant("team")], ids=["embedded", "single"])
def test_where_any_project_may_be_named_no_list_is_asked_for(tenant: Tenant | None) -> None:
    http = ScriptedHttp(response(200, live("22")))

    asyncio.run(observe_decoded(VAULT, bucket_kind(http, tenant)))

    assert paths(http) == ["http://storage/storage/v1/b/vault"]
