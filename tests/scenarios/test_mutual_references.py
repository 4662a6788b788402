"""Two instances of one file reference each other: the primary its replica for a failover, the replica its primary."""

from typing import Any, Final

from tests.kinds.instances import INSTANCES, MYSQL, instance, with_settings
from tests.scenarios.command_harness import CommandHarness

LOGGED: Final = with_settings(MYSQL, backupConfiguration={"enabled": True, "binaryLogEnabled": True})
# In alphabetical order, the dependant comes first.
PRIMARY: Final = {**LOGGED, "replicationCluster": {"failoverDrReplicaRef": {"name": "a-replica"}}}
REPLICA: Final = {**MYSQL, "instanceType": "READ_REPLICA_INSTANCE", "masterInstanceRef": {"name": "the-primary"}}
BOTH: Final = (instance(REPLICA, "a-replica"), instance(PRIMARY, "the-primary"))


def test_they_are_created_in_dependency_order_and_deleted_in_reverse(harness: CommandHarness) -> None:
    made = harness.apply(*BOTH)
    again = harness.apply(*BOTH)
    primary: dict[str, Any] = harness.live(f"{INSTANCES}/the-primary")
    removed = harness.delete()

    assert [(call.method, call.body["name"]) for call in made if call.path == INSTANCES] == [
        ("POST", "the-primary"),
        ("POST", "a-replica"),
    ]
    assert again == []
    assert (primary["replicationCluster"], primary["replicaNames"]) == (
        {"failoverDrReplicaName": "a-replica"},
        ["a-replica"],
    )
    assert [(call.method, call.path.rpartition("/")[2]) for call in removed if call.status == 200] == [
        ("DELETE", "a-replica"),
        ("DELETE", "the-primary"),
    ]
