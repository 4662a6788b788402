"""Instances in a local cloud: manifests, instances of another writer, and the requests to the service."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.testing.kind_parts import Spec
from tests.kinds.kind_harness import PROJECT, SQL, KindHarness, kind_harness

T = TypeVar("T")
INSTANCES = f"/sql/v1beta4/projects/{PROJECT}/instances"
PATH = f"{INSTANCES}/some-instance"
REF = ResourceRef(SQL, "SQLInstance", "team", "some-instance")
IGNORE = {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"}
MYSQL: Spec = {"databaseVersion": "MYSQL_8_0", "region": "us-central1", "settings": {"tier": "db-custom-1-3840"}}
POSTGRES: Spec = {**MYSQL, "databaseVersion": "POSTGRES_15"}


def instance(spec: Spec, name: str = "some-instance", **metadata: Any) -> dict[str, Any]:
    """A SQLInstance manifest."""
    annotations = {"cnrm.cloud.google.com/project-id": PROJECT, **metadata.pop("annotations", {})}
    return {
        "apiVersion": f"{SQL}/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": name, "namespace": "team", "annotations": annotations, **metadata},
        "spec": dict(spec),
    }


def with_settings(spec: Spec, **settings: Any) -> Spec:
    return {**spec, "settings": {**spec["settings"], **settings}}


def in_instance_harness(scenario: Callable[[KindHarness], Awaitable[T]]) -> T:
    """The result of the scenario in a new harness with the kind SQLInstance."""

    async def main() -> T:
        async with kind_harness() as engine:
            kind = SqlInstanceKind(engine.google)
            engine.engine = replace(engine.engine, kinds={**engine.engine.kinds, (kind.group, kind.name): kind})
            return await scenario(engine)

    return asyncio.run(main())


def create_as_another_writer(engine: KindHarness, **body: Any) -> None:
    """An instance that another writer created."""
    settings = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE", "storageAutoResize": True}
    wanted = {"name": "some-instance", "region": "us-central1", **body, "settings": {**settings, **body["settings"]}}
    assert engine.cloud.call("POST", INSTANCES, wanted).status == 200
    engine.cloud.advance(60)
    engine.cloud.journal.clear()


def users(engine: KindHarness, name: str = "some-instance") -> list[str]:
    return [user.name for user in engine.cloud.sql.state.instances[f"{PROJECT}/{name}"].users]


def write_calls(engine: KindHarness) -> list[str]:
    """Method and last part of the path of every write."""
    return [f"{entry.method} {entry.path.rpartition('/')[2]}" for entry in engine.writes]


def is_settled(outcome: StepOutcome) -> bool:
    return isinstance(outcome, Settled)


def error_in(outcome: StepOutcome) -> Exception:
    assert isinstance(outcome, Stopped)
    return outcome.error
