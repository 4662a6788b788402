"""In a cluster a generated Secret belongs to its resource, and stays with an object that stays."""

import asyncio
from typing import Any

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled
from setpoint.kind import KindContext
from setpoint.stores.kubernetes.store import KubernetesStore
from setpoint.testing import EngineHarness, VirtualClock
from tests.cluster.access import Access
from tests.engine.owners.accounts import AccountKind, Bank
from tests.stores.samples import GROUP, REF, SECRET_REF, instance

SECRET = "/api/v1/namespaces/default/secrets/login"


class ServedAccountKind(AccountKind):
    """The same, by the name of a kind that the API server serves."""

    group = GROUP
    version = "v1beta1"
    name = "SQLInstance"


def account(**annotations: str) -> JsonObject:
    return instance(spec={"loginSecretRef": "login"}, annotations=annotations)


def test_the_resource_is_the_controller_of_its_secret(
    prepared: Access, store: KubernetesStore, loop: asyncio.Runner
) -> None:
    bank = Bank()
    harness = EngineHarness([ServedAccountKind(KindContext(), bank)], store, VirtualClock())
    resource = loop.run(harness.settle(account()))
    made: Any = prepared.call("GET", SECRET).body

    owner = {"apiVersion": f"{GROUP}/v1beta1", "kind": "SQLInstance", "name": "db", "uid": resource.uid}
    assert made["metadata"]["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
    assert (made["type"], sorted(made["data"])) == ("Opaque", ["login", "password"])
    assert isinstance(loop.run(harness.step(REF)), Settled)
    assert len(bank.passwords["db"]) == 1

    prepared.call("DELETE", SECRET)
    loop.run(harness.go_on(REF))
    assert len(bank.passwords["db"]) == 2
    # An annotation that keeps the object keeps its password as well: without an owner, nothing collects the Secret.
    loop.run(harness.apply(account(**{"cnrm.cloud.google.com/deletion-policy": "abandon"})))
    loop.run(harness.delete(REF))
    assert isinstance(loop.run(harness.go_on(REF)), Gone)
    left: Any = prepared.call("GET", SECRET).body
    assert left["metadata"].get("ownerReferences", []) == []
    assert loop.run(harness.store.get(ResourceRef(*SECRET_REF))) is not None
