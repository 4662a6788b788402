"""What only one service of the catalogue has: secret versions, services, record sets, statements, connections."""

from collections.abc import Mapping

from setpoint.localcloud.cloud import Cloud
from tests.localcloud.requests import OPERATION_SECONDS, error_message, get, ok

TOPIC = "/pubsub.googleapis.com/v1/projects/acme/topics/orders"
KMS = "/cloudkms.googleapis.com/v1/projects/acme/locations/global"
COMPUTE = "/compute.googleapis.com/compute/v1/projects/acme"


def _status(cloud: Cloud, method: str, path: str, body: dict[str, object] | None = None) -> tuple[int, str]:
    answer = cloud.call(method, path, body)
    return answer.status, error_message(answer)


def _made(cloud: Cloud, path: str, body: Mapping[str, object]) -> None:
    ok(cloud.call("POST", path, dict(body)))
    cloud.advance(OPERATION_SECONDS)


def test_versions_of_a_secret_are_added_read_and_switched_off(cloud: Cloud) -> None:
    secret = "/secretmanager.googleapis.com/v1/projects/acme/secrets/s"
    ok(cloud.call("POST", "/secretmanager.googleapis.com/v1/projects/acme/secrets?secretId=s", {"replication": {}}))
    ok(cloud.call("POST", f"{secret}:addVersion", {"payload": {"data": "b25l"}}))
    second = ok(cloud.call("POST", f"{secret}:addVersion", {"payload": {"data": "dHdv"}}))

    assert second["name"] == "projects/acme/secrets/s/versions/2"
    assert get(cloud, f"{secret}/versions/latest:access")["payload"] == {"data": "dHdv"}
    ok(cloud.call("POST", f"{secret}/versions/2:disable", {}))
    assert _status(cloud, "GET", f"{secret}/versions/2:access")[0] == 400
    assert "payload" not in get(cloud, f"{secret}/versions/1")


def test_a_service_of_a_project_is_enabled_by_an_operation(cloud: Cloud) -> None:
    service = "/serviceusage.googleapis.com/v1/projects/acme/services/pubsub.googleapis.com"

    assert get(cloud, service)["state"] == "DISABLED"
    _made(cloud, f"{service}:enable", {})
    assert get(cloud, service)["state"] == "ENABLED"


def test_record_sets_change_together_or_not_at_all(cloud: Cloud) -> None:
    zones = "/dns.googleapis.com/dns/v1/projects/acme/managedZones"
    _made(cloud, zones, {"name": "z", "dnsName": "a.example.", "description": ""})
    record = {"name": "www.a.example.", "type": "A", "ttl": 300, "rrdatas": ["10.0.0.1"]}
    ok(cloud.call("POST", f"{zones}/z/changes", {"additions": [record]}))

    both = {"deletions": [{**record, "ttl": 5}], "additions": [{**record, "rrdatas": ["10.0.0.2"]}]}

    assert cloud.call("POST", f"{zones}/z/changes", both).status == 412
    assert get(cloud, f"{zones}/z/rrsets?name=www.a.example.&type=A")["rrsets"][0]["rrdatas"] == ["10.0.0.1"]
    assert [one["type"] for one in get(cloud, f"{zones}/z/rrsets")["rrsets"]] == ["NS", "SOA", "A"]
    assert _status(cloud, "DELETE", f"{zones}/z")[0] == 400
    ok(cloud.call("POST", f"{zones}/z/changes", {"deletions": [record]}))
    assert cloud.call("DELETE", f"{zones}/z").status == 204


def test_a_database_is_made_by_a_statement(cloud: Cloud) -> None:
    instances = "/spanner.googleapis.com/v1/projects/acme/instances"
    _made(cloud, instances, {"instanceId": "i", "instance": {"config": "c", "displayName": "d"}})
    databases = f"{instances}/i/databases"

    _made(
        cloud, databases, {"createStatement": "CREATE DATABASE `db`", "extraStatements": ["CREATE TABLE t (a INT64)"]}
    )

    assert get(cloud, f"{databases}/db")["state"] == "READY"
    assert get(cloud, f"{databases}/db/ddl") == {"statements": ["CREATE TABLE t (a INT64)"]}
    assert _status(cloud, "POST", databases, {"createStatement": "DROP DATABASE db"})[0] == 400


def test_a_connection_is_that_of_a_network(cloud: Cloud) -> None:
    connections = "/servicenetworking.googleapis.com/v1/services/servicenetworking.googleapis.com/connections"
    body = {"network": "projects/acme/global/networks/main", "reservedPeeringRanges": ["range"]}

    ok(cloud.call("PATCH", f"{connections}/-?force=true", body))
    cloud.advance(OPERATION_SECONDS)

    found = get(cloud, f"{connections}?network=projects/acme/global/networks/main")["connections"]
    assert [one["reservedPeeringRanges"] for one in found] == [["range"]]
    assert get(cloud, f"{connections}?network=projects/acme/global/networks/other") == {}


def test_a_connection_ends_with_the_peering_of_its_network(cloud: Cloud) -> None:
    connections = "/servicenetworking.googleapis.com/v1/services/servicenetworking.googleapis.com/connections"
    _made(cloud, f"{COMPUTE}/global/networks", {"name": "main"})
    body = {"network": "projects/acme/global/networks/main", "reservedPeeringRanges": ["range"]}
    ok(cloud.call("PATCH", f"{connections}/-?force=true", body))
    cloud.advance(OPERATION_SECONDS)
    peering = {"name": "servicenetworking-googleapis-com"}

    started = ok(cloud.call("POST", f"{COMPUTE}/global/networks/main/removePeering", peering))

    assert started["operationType"] == "removePeering"
    assert get(cloud, connections)["connections"][0]["peering"] == "servicenetworking-googleapis-com"
    cloud.advance(OPERATION_SECONDS)
    assert get(cloud, connections) == {}
    assert get(cloud, f"{COMPUTE}/global/operations/{started['name']}")["status"] == "DONE"


def test_an_identity_of_a_service_is_made_once(cloud: Cloud) -> None:
    service = "/serviceusage.googleapis.com/v1beta1/projects/acme/services/pubsub.googleapis.com"

    started = ok(cloud.call("POST", f"{service}:generateServiceIdentity", {}))
    cloud.advance(OPERATION_SECONDS)
    again = ok(cloud.call("POST", f"{service}:generateServiceIdentity", {}))

    assert "done" not in started
    assert again["done"] is True
    assert again["response"]["email"].endswith("@gcp-sa-pubsub.iam.gserviceaccount.com")


def test_a_method_for_one_member_keeps_the_others(cloud: Cloud) -> None:
    reservations = f"{COMPUTE}/zones/eu-a/reservations"
    held = {"count": "3", "instanceProperties": {"machineType": "e2-small"}}
    _made(cloud, reservations, {"name": "r", "specificReservation": held})

    ok(cloud.call("POST", f"{reservations}/r/resize", {"specificSkuCount": "5"}))
    cloud.advance(OPERATION_SECONDS)

    assert get(cloud, f"{reservations}/r")["specificReservation"] == {**held, "count": "5"}


def test_a_collection_has_all_methods_of_creation(cloud: Cloud) -> None:
    clusters = "/alloydb.googleapis.com/v1beta/projects/acme/locations/eu/clusters"
    _made(cloud, f"{clusters}?clusterId=c", {})

    _made(cloud, f"{clusters}/c/instances:createsecondary?instanceId=i", {"instanceType": "SECONDARY"})

    assert get(cloud, f"{clusters}/c/instances/i")["instanceType"] == "SECONDARY"


def test_an_id_that_the_service_would_refuse_is_refused(cloud: Cloud) -> None:
    accounts = "/iam.googleapis.com/v1/projects/acme/serviceAccounts"

    assert _status(cloud, "PUT", "/pubsub.googleapis.com/v1/projects/acme/topics/1st", {})[0] == 400
    assert _status(cloud, "POST", accounts, {"accountId": "Short", "serviceAccount": {}})[0] == 400
    assert _status(cloud, "POST", f"{COMPUTE}/global/networks", {"name": "Main"})[0] == 400


def test_an_account_has_an_address_and_is_switched_off(cloud: Cloud) -> None:
    accounts = "/iam.googleapis.com/v1/projects/acme/serviceAccounts"
    made = ok(cloud.call("POST", accounts, {"accountId": "some-robot", "serviceAccount": {"displayName": "Robot"}}))

    ok(cloud.call("POST", f"{accounts}/{made['email']}:disable", {}))

    assert made["email"] == "some-robot@acme.iam.gserviceaccount.com"
    assert get(cloud, f"{accounts}/{made['email']}")["disabled"] is True


def test_a_key_has_a_version_unless_its_creation_says_otherwise(cloud: Cloud) -> None:
    ok(cloud.call("POST", f"{KMS}/keyRings?keyRingId=ring", {}))
    keys = f"{KMS}/keyRings/ring/cryptoKeys"
    ok(cloud.call("POST", f"{keys}?cryptoKeyId=one", {}))
    ok(cloud.call("POST", f"{keys}?cryptoKeyId=none&skipInitialVersionCreation=true", {}))

    ok(cloud.call("POST", f"{keys}/one/cryptoKeyVersions/1:destroy", {}))

    assert get(cloud, f"{keys}/one/cryptoKeyVersions/1")["state"] == "DESTROY_SCHEDULED"
    assert _status(cloud, "POST", f"{keys}/one/cryptoKeyVersions/1:destroy", {})[0] == 400
    assert get(cloud, f"{keys}/none/cryptoKeyVersions") == {}


def test_a_cluster_is_updated_by_what_is_desired(cloud: Cloud) -> None:
    clusters = "/container.googleapis.com/v1beta1/projects/acme/locations/r1/clusters"
    _made(cloud, clusters, {"cluster": {"name": "c"}})

    ok(cloud.call("PUT", f"{clusters}/c", {"update": {"desiredLoggingService": "none"}}))
    cloud.advance(OPERATION_SECONDS)

    assert get(cloud, f"{clusters}/c")["loggingService"] == "none"
    assert _status(cloud, "PUT", f"{clusters}/c", {"update": {"loggingService": "none"}})[0] == 400


def test_a_part_of_a_router_is_in_its_list(cloud: Cloud) -> None:
    _made(cloud, f"{COMPUTE}/regions/r1/routers", {"name": "r", "network": "global/networks/main"})
    router = f"{COMPUTE}/regions/r1/routers/r"
    nat = {"name": "n", "natIpAllocateOption": "AUTO_ONLY", "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"}

    ok(cloud.call("PATCH", router, {"nats": [nat]}))
    cloud.advance(OPERATION_SECONDS)

    assert get(cloud, router)["nats"][0]["name"] == "n"


def test_what_is_below_a_bucket_needs_the_bucket(cloud: Cloud) -> None:
    policy = "/storage.googleapis.com/storage/v1/b/stuff/iam"

    assert cloud.call("GET", policy).status == 404
    ok(cloud.call("POST", "/storage.googleapis.com/storage/v1/b?project=acme", {"name": "stuff"}))
    binding = {"role": "roles/storage.admin", "members": ["user:a@example.com"]}
    ok(cloud.call("PUT", policy, {"bindings": [binding]}))
    assert get(cloud, policy)["bindings"] == [binding]


def test_the_number_of_a_project_is_its_id(cloud: Cloud) -> None:
    ok(cloud.call("PUT", TOPIC, {}))
    number = get(cloud, "/cloudresourcemanager.googleapis.com/v1/projects/acme")["projectNumber"]

    assert get(cloud, TOPIC.replace("acme", number)) == get(cloud, TOPIC)


def test_methods_of_an_instance_want_it_stopped_and_the_fingerprint_of_their_part(cloud: Cloud) -> None:
    zone = f"{COMPUTE}/zones/europe-west1-b"
    instance = f"{zone}/instances/i"
    _made(cloud, f"{zone}/instances", {"name": "i", "machineType": "zones/europe-west1-b/machineTypes/e2-small"})
    account = {"email": "a@acme.iam.gserviceaccount.com", "scopes": ["cloud-platform"]}

    assert _status(cloud, "POST", f"{instance}/setServiceAccount", dict(account))[0] == 400
    _made(cloud, f"{instance}/stop", {})
    _made(cloud, f"{instance}/setServiceAccount", account)
    _made(cloud, f"{instance}/start", {})
    _made(cloud, f"{instance}/setDeletionProtection?deletionProtection=true", {})

    live = get(cloud, instance)
    assert (live["status"], live["serviceAccounts"], live["deletionProtection"]) == ("RUNNING", [account], True)
    assert _status(cloud, "POST", f"{instance}/setTags", {"items": ["a"], "fingerprint": "c3RhbGU="})[0] == 412
    _made(cloud, f"{instance}/setTags", {"items": ["a"], "fingerprint": live["tags"]["fingerprint"]})
    assert get(cloud, instance)["tags"]["items"] == ["a"]
    assert _status(cloud, "POST", f"{instance}/setServiceAccount", {"mail": "x"})[0] == 400


def test_a_policy_of_a_backend_service_is_set_by_its_method_alone(cloud: Cloud) -> None:
    services = f"{COMPUTE}/global/backendServices"
    policy = "projects/acme/global/securityPolicies/p"
    _made(cloud, services, {"name": "b", "securityPolicy": policy, "edgeSecurityPolicy": policy})
    assert "securityPolicy" not in get(cloud, f"{services}/b")

    _made(cloud, f"{services}/b/setEdgeSecurityPolicy", {"securityPolicy": policy})
    assert get(cloud, f"{services}/b")["edgeSecurityPolicy"].endswith(policy)
    _made(cloud, f"{services}/b/setEdgeSecurityPolicy", {"securityPolicy": None})

    assert get(cloud, f"{services}/b").keys().isdisjoint({"securityPolicy", "edgeSecurityPolicy"})


def test_an_update_of_a_cluster_names_one_field(cloud: Cloud) -> None:
    clusters = "/container.googleapis.com/v1beta1/projects/acme/locations/europe-west1/clusters"
    _made(cloud, clusters, {"cluster": {"name": "c", "networkConfig": {"enableL4ilbSubsetting": False}}})
    both = {"desiredLoggingService": "none", "desiredMonitoringService": "none"}

    assert _status(cloud, "PUT", f"{clusters}/c", {"update": both})[0] == 400
    assert _status(cloud, "PUT", f"{clusters}/c", {"update": {"loggingSink": "none"}})[0] == 400
    ok(cloud.call("PUT", f"{clusters}/c", {"update": {"desiredL4ilbSubsettingConfig": {"enabled": True}}}))
    cloud.advance(OPERATION_SECONDS)
    _made(cloud, f"{clusters}/c:setLegacyAbac", {"enabled": True})

    live = get(cloud, f"{clusters}/c")
    assert (live["networkConfig"], live["legacyAbac"]) == ({"enableL4ilbSubsetting": True}, {"enabled": True})


def test_a_node_pool_changes_by_a_request_of_its_own_and_is_resized(cloud: Cloud) -> None:
    clusters = "/container.googleapis.com/v1beta1/projects/acme/locations/europe-west1/clusters"
    _made(cloud, clusters, {"cluster": {"name": "c"}})
    pools = f"{clusters}/c/nodePools"
    labels = {"a": "1", "b": "2"}
    _made(cloud, pools, {"nodePool": {"name": "p", "initialNodeCount": 1, "config": {"resourceLabels": labels}}})

    ok(cloud.call("PUT", f"{pools}/p", {"resourceLabels": {"labels": {"b": "3"}}}))
    cloud.advance(OPERATION_SECONDS)
    _made(cloud, f"{pools}/p:setSize", {"nodeCount": 4})

    live = get(cloud, f"{pools}/p")
    assert (live["config"]["resourceLabels"], live["initialNodeCount"]) == ({"b": "3"}, 4)
