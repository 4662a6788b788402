"""Laws of instances: an insert reads back as declared, the writes of a plan are sufficient, nothing is lost."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.plan import Plan, PlannedWrite
from setpoint.core.schema.shape import paths_of, shape_of
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.json_types import MISSING, JsonObject
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Intent, Present, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.sql_instance import SqlInstance, SqlInstanceKind
from setpoint.kinds.gcp.sql_instance.live import read_instance
from setpoint.kinds.gcp.sql_instance.requests import insert_body, patch_body, put_body
from setpoint.localcloud.schema import NullMeaning, client_fields, merge_patch, validate
from setpoint.localcloud.sql.defaults import keep_unspecified_fields, with_defaults, without_rechosen_fields
from setpoint.localcloud.sql.instances import client_config
from setpoint.localcloud.sql.schema import INSTANCE
from tests.kinds.effective_states import effective_over
from tests.kinds.effective_states import plan_over as kind_plan_over

pytestmark = pytest.mark.laws

# Never called: everything here is pure.
KIND = SqlInstanceKind(GoogleClient(HttpClient(), GoogleSettings()))
CNRM = "cnrm.cloud.google.com"
# The writes that a plan may have: each separate request, and one for everything else.
ENOUGH = 6
PROTECTED = tuple(
    Path.parse(f"spec.settings.{path}")
    for path in (
        *("deletionProtectionEnabled", "edition", "backupConfiguration.enabled"),
        *("backupConfiguration.pointInTimeRecoveryEnabled", "backupConfiguration.binaryLogEnabled"),
    )
)
SENT_ONLY = {"settings.settingsVersion", "settings.crashSafeReplicationEnabled"}


def part(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object that may have any of these fields, or null instead."""
    return st.fixed_dictionaries({}, optional={name: values | st.none() for name, values in fields.items()})


def whole(required: dict[str, st.SearchStrategy[Any]], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object that has the required fields, and may have the others."""
    return st.builds(lambda must, may: {**may, **must}, st.fixed_dictionaries(required), part(**fields))


bools = st.booleans()
words = st.sampled_from(["a", "b", ""])
networks = whole(
    {"value": st.sampled_from(["10.0.0.0/8", "192.0.2.0/24"])},
    name=words,
    expirationTime=st.sampled_from(["2099-01-01T00:00:00Z", "2099-01-01T01:00:00.50+01:00"]),
)
ip_configurations = part(
    allocatedIpRange=words,
    authorizedNetworks=st.lists(networks, max_size=2, unique_by=lambda one: (one.get("name") or "", one["value"])),
    enablePrivatePathForGoogleCloudServices=bools,
    ipv4Enabled=bools,
    pscConfig=st.lists(part(allowedConsumerProjects=st.lists(words, max_size=2), pscEnabled=bools), max_size=1),
    requireSsl=bools,
    sslMode=st.sampled_from(
        ["ALLOW_UNENCRYPTED_AND_ENCRYPTED", "ENCRYPTED_ONLY", "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"]
    ),
)
backups = part(
    backupRetentionSettings=whole({"retainedBackups": st.integers(0, 9)}, retentionUnit=st.just("COUNT")),
    binaryLogEnabled=bools,
    enabled=bools,
    location=words,
    pointInTimeRecoveryEnabled=bools,
    startTime=st.sampled_from(["03:00", "12:00"]),
    transactionLogRetentionDays=st.sampled_from([3, 7, 14]),
)
policies = whole(
    {"enablePasswordPolicy": bools},
    complexity=st.just("COMPLEXITY_DEFAULT"),
    disallowUsernameSubstring=bools,
    minLength=st.integers(0, 9),
    passwordChangeInterval=st.just("3600s"),
    reuseInterval=st.integers(0, 3),
)
settings = whole(
    # Tiers of no edition in particular: the model of the service here has no rule about them.
    {"tier": st.sampled_from(["some-tier", "other-tier"])},
    activationPolicy=st.sampled_from(["ALWAYS", "NEVER"]),
    activeDirectoryConfig=st.just({"domain": "example.com"}),
    advancedMachineFeatures=part(threadsPerCore=st.integers(0, 2)),
    authorizedGaeApplications=st.lists(words, max_size=1),
    availabilityType=st.sampled_from(["ZONAL", "REGIONAL"]),
    backupConfiguration=backups,
    connectorEnforcement=st.sampled_from(["REQUIRED", "NOT_REQUIRED"]),
    crashSafeReplication=bools,
    dataCacheConfig=part(dataCacheEnabled=bools),
    databaseFlags=st.lists(
        st.fixed_dictionaries({"name": st.sampled_from(["x", "y"]), "value": words}),
        max_size=2,
        unique_by=lambda one: one["name"],
    ),
    deletionProtectionEnabled=bools,
    denyMaintenancePeriod=st.just({"startDate": "2026-01-01", "endDate": "2026-02-01", "time": "00:00:00"}),
    diskAutoresize=bools,
    diskAutoresizeLimit=st.integers(0, 100),
    diskSize=st.just(30),
    edition=st.sampled_from(["ENTERPRISE", "ENTERPRISE_PLUS"]),
    insightsConfig=part(
        queryInsightsEnabled=bools,
        queryPlansPerMinute=st.sampled_from([0, 5, 9]),
        queryStringLength=st.sampled_from([0, 1024, 2048]),
        recordApplicationTags=bools,
        recordClientAddress=bools,
    ),
    ipConfiguration=ip_configurations,
    locationPreference=part(zone=words, secondaryZone=words),
    maintenanceWindow=part(day=st.integers(0, 7), hour=st.integers(0, 23), updateTrack=st.just("stable")),
    passwordValidationPolicy=policies,
    pricingPlan=st.sampled_from(["PER_USE", "PACKAGE"]),
    sqlServerAuditConfig=st.just({"bucketRef": {"external": "gs://b"}, "uploadInterval": "600s"}),
)
replicas = part(
    failoverTarget=bools,
    username=words,
    connectRetryInterval=st.integers(0, 60),
    masterHeartbeatPeriod=st.integers(0, 9),
)
specs = whole(
    {
        "databaseVersion": st.sampled_from(["MYSQL_8_0", "POSTGRES_15"]),
        "region": st.just("us-central1"),
        "settings": settings,
    },
    replicaConfiguration=replicas,
    rootPassword=st.just({"value": "s3cret"}),
)
labels = st.dictionaries(st.sampled_from(["team", "stage", "example.com/x"]), st.sampled_from(["red", "blue"]))
rules = st.sampled_from(
    [
        {},
        {f"{CNRM}/ignore-unspecified-fields": "true"},
        {f"{CNRM}/default-to-gcp-fields": "spec.settings.ipConfiguration,spec.settings.dataCacheConfig"},
        {f"{CNRM}/unmanaged": "spec.settings.edition,spec.settings.backupConfiguration.enabled"},
    ]
)


def manifest(spec: dict[str, Any], some: dict[str, str], policy: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": "i", "namespace": "p", "uid": "u", "labels": some, "annotations": policy},
        "spec": spec,
    }


def with_its_own_log(one: dict[str, Any]) -> dict[str, Any]:
    """Each engine has one log for point-in-time recovery: settings of the other are left out."""
    other = "pointInTimeRecoveryEnabled" if one["spec"]["databaseVersion"].startswith("MYSQL") else "binaryLogEnabled"
    declared = one["spec"]["settings"].get("backupConfiguration")
    if not declared:
        return one
    backups = {name: value for name, value in declared.items() if name != other}
    return {**one, "spec": {**one["spec"], "settings": {**one["spec"]["settings"], "backupConfiguration": backups}}}


manifests = st.builds(manifest, specs, labels, rules).map(with_its_own_log)


def intent_for(one: dict[str, Any]) -> Intent:
    return intent_of(Resource(one), KIND, ResolvedReferences())


# --- A service that stores requests and fills in defaults -------------------------------------------------------------


def wire(body: dict[str, Any]) -> dict[str, Any]:
    """A body after it has been through the wire."""
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(body))
    return decoded


def inserted(intent: Intent) -> dict[str, Any]:
    body = wire(insert_body(intent, effective_over(KIND, intent).tree))
    return with_version(with_defaults(client_fields(INSTANCE, validate(INSTANCE, body))))


def with_version(resource: dict[str, Any]) -> dict[str, Any]:
    return {**resource, "settings": {**resource["settings"], "settingsVersion": "7"}}


def put(resource: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    wanted = keep_unspecified_fields(validate(INSTANCE, body), client_config(resource))
    return with_version(with_defaults(client_config(wanted)))


def patched(resource: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    read_body = validate(INSTANCE, body, NullMeaning.REMOVE)
    return with_version(
        with_defaults(
            client_config(merge_patch(without_rechosen_fields(client_config(resource), read_body), read_body))
        )
    )


def observation_of(resource: dict[str, Any]) -> Present[SqlInstance]:
    found = read_instance(msgspec.json.encode(resource), "i")
    return Present(found.instance, None, found.version)


def plan_over(intent: Intent, before: Present[SqlInstance]) -> Plan:
    view = KIND.view(before.live)
    return kind_plan_over(KIND, intent, view)


def wanted_over(intent: Intent, before: Present[SqlInstance]) -> JsonObject:
    view = KIND.view(before.live)
    return effective_over(KIND, intent, view).tree


def body_of(intent: Intent, write: PlannedWrite, before: Present[SqlInstance], *, whole: bool = True) -> dict[str, Any]:
    """The body of a write: a PATCH for each separate request, and either form for the rest."""
    wanted: Any = wanted_over(intent, before)
    match write.name:
        case "database version":
            return {"databaseVersion": wanted["spec"]["databaseVersion"]}
        case "edition":
            named = wanted["spec"]["settings"]
            return {"settings": {"edition": named["edition"], "tier": named["tier"]}}
        case _:
            declared = effective_over(KIND, intent, KIND.view(before.live)).declared
            made = put_body if whole else patch_body
            return wire(made(intent, declared, wanted, before))


def carried_out(intent: Intent, resource: dict[str, Any], *, whole: bool = True) -> dict[str, Any]:
    """The instance after all writes."""
    for _ in range(ENOUGH):
        before = observation_of(resource)
        writes = plan_over(intent, before).writes
        if not writes:
            return resource
        body = body_of(intent, writes[0], before, whole=whole)
        replaces = whole and writes[0].name == "update"
        resource = put(resource, body) if replaces else patched(resource, body)
    raise AssertionError([str(change.path) for change in plan_over(intent, observation_of(resource)).changes])


def of_one_engine(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The second with the version of the first: the engine of an instance cannot change."""
    version = before["spec"]["databaseVersion"]
    return with_its_own_log({**after, "spec": {**after["spec"], "databaseVersion": version}})


# --- Laws ------------------------------------------------------------------------------------------------------------


@given(manifests)
def test_what_is_inserted_reads_back_as_declared(one: dict[str, Any]) -> None:
    intent = intent_for(one)

    changes = plan_over(intent, observation_of(inserted(intent))).changes

    # The service decides unspecified settings: an edition has its own defaults.
    assert [str(change.path) for change in changes if change.rule.value == "spec"] == []


@given(manifests, manifests)
def test_the_writes_of_a_plan_turn_any_instance_into_any_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    intent = intent_for(of_one_engine(before, after))

    resource = carried_out(intent, inserted(intent_for(before)))

    assert plan_over(intent, observation_of(resource)).is_empty


@given(manifests, manifests)
def test_patches_do_so_for_an_instance_with_unmodelled_settings(before: dict[str, Any], after: dict[str, Any]) -> None:
    intent = intent_for(of_one_engine(before, after))
    more = merge_patch(inserted(intent_for(before)), {"settings": {"retainBackupsOnDelete": True}})

    resource = carried_out(intent, more, whole=False)

    assert plan_over(intent, observation_of(resource)).is_empty
    assert resource["settings"]["retainBackupsOnDelete"] is True


@given(manifests, manifests)
def test_unspecified_protections_are_kept(before: dict[str, Any], after: dict[str, Any]) -> None:
    after = of_one_engine(before, after)
    intent = intent_for(after)
    start = inserted(intent_for(before))

    had, has = KIND.view(observation_of(start).live), KIND.view(observation_of(carried_out(intent, start)).live)

    for path in PROTECTED:
        if get_at(had, path) in (True, "ENTERPRISE_PLUS") and is_silent(after, path):
            assert get_at(has, path) == get_at(had, path), str(path)


def is_silent(one: Mapping[str, Any], path: Path) -> bool:
    """Whether the spec leaves the field out: null is not left out."""
    return all(get_at(one, Path(path.steps[:depth])) is not None for depth in range(3, len(path.steps))) and (
        get_at(one, path) is MISSING
    )


@given(manifests, manifests)
def test_bodies_contain_modelled_fields_only(before: dict[str, Any], after: dict[str, Any]) -> None:
    intent = intent_for(of_one_engine(before, after))
    live = observation_of(inserted(intent_for(before)))
    modelled = {*paths_of(shape_of(SqlInstance)), *SENT_ONLY, "rootPassword"}

    bodies = [body_of(intent, write, live) for write in plan_over(intent, live).writes if write.name != "root password"]
    bodies.append(wire(insert_body(intent, effective_over(KIND, intent).tree)))

    for body in bodies:
        assert {path for path in places(body, "") if not path.endswith("kind")} <= modelled


def places(value: object, at: str) -> Iterator[str]:
    """Every path in a body, with indexes left out."""
    if isinstance(value, dict) and at != "settings.userLabels":
        for name, one in value.items():
            yield from places(one, f"{at}.{name}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for one in value:
            yield from places(one, f"{at}[…]")
    else:
        yield at


@given(manifests, manifests)
def test_the_arguments_are_not_mutated(before: dict[str, Any], after: dict[str, Any]) -> None:
    intent = intent_for(of_one_engine(before, after))
    live = observation_of(inserted(intent_for(before)))
    untouched = canonical(after), canonical(live.live), canonical(intent.declared.tree)

    for write in plan_over(intent, live).writes:
        body_of(intent, write, live)
    insert_body(intent, effective_over(KIND, intent).tree)

    assert (canonical(after), canonical(live.live), canonical(intent.declared.tree)) == untouched


@given(manifests, st.dictionaries(st.sampled_from(["etag", "createTime", "novelty"]), st.text()), st.integers(1, 99))
def test_unmodelled_fields_do_not_change_the_digest(one: dict[str, Any], noise: dict[str, str], version: int) -> None:
    resource = inserted(intent_for(one))
    noisy = merge_patch({**resource, **noise, "state": "MAINTENANCE"}, {"settings": {"settingsVersion": str(version)}})

    assert digest(observation_of(noisy).live) == digest(observation_of(resource).live)


@given(labels)
def test_unspecified_settings_are_not_written_under_the_ignore_policy(some: dict[str, str]) -> None:
    spec = {"databaseVersion": "POSTGRES_15", "settings": {"tier": "db-perf-optimized-N-2"}}
    intent = intent_for(manifest(spec, {}, {f"{CNRM}/ignore-unspecified-fields": "true"}))
    backed_up = {"enabled": True, "pointInTimeRecoveryEnabled": True}
    theirs = {"tier": "db-perf-optimized-N-2", "edition": "ENTERPRISE_PLUS", "userLabels": some}
    resource = with_defaults(
        {"name": "i", "databaseVersion": "POSTGRES_15", "settings": {**theirs, "backupConfiguration": backed_up}}
    )

    assert plan_over(intent, observation_of(resource)).is_empty
