"""Two instances of one file name each other: the primary its replica for a failover, the replica its primary."""

from typing import Any, Final

from tests.kinds.instances import INSTANCES, MYSQL, instance, with_settings
from tests.scenarios.stage import Stage

LOGGED: Final = with_settings(MYSQL, backupConfiguration={"enabled": True, "binaryLogEnabled": True})
# In the order of the alphabet, the one that has to wait comes first.
PRIMARY: Final = {**LOGGED, "replicationCluster": {"failoverDrReplicaRef": {"name": "a-replica"}}}
REPLICA: Final = {**MYSQL, "instanceType": "READ_REPLICA_INSTANCE", "masterInstanceRef": {"name": "the-primary"}}
BOTH: Final = (instance(REPLICA, "a-replica"), instance(PRIMARY, "the-primary"))


def test_they_are_made_one_after_the_other_and_removed_the_other_way_round(stage: Stage) -> None:
    made = stage.apply(*BOTH)
    again = stage.apply(*BOTH)
    primary: dict[str, Any] = stage.live(f"{INSTANCES}/the-primary")
    removed = stage.delete()

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
