"""A world that an earlier version recorded: nothing is written to it that is not declared here."""

import asyncio
import gzip
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path as File
from typing import Any, Final

import pytest

from setpoint.app import AppSettings, definitions
from setpoint.core.values.paths import Path, set_at
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind, ResolvedReferences
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.preview import open_recorded
from setpoint.replay.preview_report import PreviewReport
from setpoint.replay.world_file import unpack_world
from setpoint.testing import ChildField
from tests.cluster.access import Access
from tests.engine.owners.owner_fixtures import field_at
from tests.engine.owners.upgrading import otherwise, with_another
from tests.replay.record_kept_world import KEPT, record_world

# The group of kinds that no version has released yet: there is nothing of them that an upgrade could change.
UNRECORDED = "iam.cnrm.cloud.google.com"

# By `KIND/NAME`: the fields that the implementations of today set on what is in the kept world.
_MOUNTS: Final = ("Deployment/trustee-deployment.spec.template.spec.volumes",)
DECLARED: Final[Mapping[str, tuple[str, ...]]] = {
    # Pods get no private key any more.
    "KbsConfig/least-kbs-config": _MOUNTS,
    "KbsConfig/much-kbs-config": _MOUNTS,
}
WHAT_TO_DO: Final = (
    "this is written to what earlier versions made. If that is meant: raise the revision of the kind or owner, and "
    "declare the fields here. `python -m tests.replay.record_kept_world` records the world again, once the old one is "
    "out of use"
)
Change = Callable[[EngineContext], EngineContext]


def preview_kept_world(change: Change = lambda engine: engine) -> PreviewReport:
    """The preview of everything in the kept world; no service is asked, and nothing can be written."""

    async def main() -> PreviewReport:
        kept = unpack_world(gzip.compress(KEPT.read_bytes()), str(KEPT))
        async with open_recorded(AppSettings("memory:"), kept) as again:
            return await replace(again, engine=change(again.engine)).preview_all(lambda _: None)

    return asyncio.run(main())


def written_fields(report: PreviewReport) -> list[str]:
    """Each resource with writes: its finding, and the fields or the error."""
    return [
        f"{one.ref.kind}/{one.ref.name} {one.finding.value}: {', '.join(one.fields) or one.trouble}"
        for one in report.found
        if not one.writes_nothing
    ]


def undeclared_fields(report: PreviewReport) -> list[str]:
    """The same, without the fields that are declared."""
    lines = []
    for one in report.found:
        name = f"{one.ref.kind}/{one.ref.name}"
        left = [path for path in one.fields if path not in DECLARED.get(name, ())]
        if not one.writes_nothing and (left or not one.fields):
            lines.append(f"{name} {one.finding.value}: {', '.join(left) or one.trouble}")
    return lines


def test_only_declared_fields_are_written_to_objects_of_earlier_versions() -> None:
    report = preview_kept_world()

    assert written_fields(report) == [f"{name} writes: {', '.join(paths)}" for name, paths in DECLARED.items()], (
        WHAT_TO_DO
    )
    assert (report.blocked, report.missed) == ((), ())


def test_the_kept_world_has_every_kind_and_owner() -> None:
    there = {(one.ref.group, one.ref.kind) for one in preview_kept_world().found}

    missing = sorted(one[1] for one in definitions() if one not in (*there, REFERENCE_GRANT) and one[0] != UNRECORDED)
    assert missing == [], (
        "declare one in tests/replay/kept_world.yaml, and run `python -m tests.replay.record_kept_world`"
    )


# --- Changes are found -----------------------------------------------------------------------------------------------


def with_changed_mapping(kind: AnyKind, path: str, value: Any) -> AnyKind:
    """The kind with another value at that path of everything that it declares."""
    before: Any = type(kind)

    def declare(self: Any, resource: Resource, resolved: ResolvedReferences) -> Any:
        return set_at(before.declare(self, resource, resolved), Path.parse(path), value)

    made: Any = type(before.__name__, (before,), {"__slots__": (), "declare": declare})
    other: AnyKind = made(**{one.name: getattr(kind, one.name) for one in fields(before)})
    return other


CHANGES: Final[list[tuple[str, str, Any, list[str]]]] = [
    (
        *("StorageBucket", "spec.storageClass", "COLDLINE"),
        ["StorageBucket/least masked: spec.storageClass", "StorageBucket/much masked: spec.storageClass"],
    ),
    (
        *("SQLInstance", "spec.settings.activationPolicy", "NEVER"),
        [
            "SQLInstance/least writes: spec.settings.activationPolicy",
            "SQLInstance/much writes: spec.settings.activationPolicy",
        ],
    ),
    ("SQLDatabase", "spec.collation", "utf8mb4_bin", ["SQLDatabase/orders writes: spec.collation"]),
    (
        *("SQLUser", "spec.host", "localhost"),
        [
            'SQLUser/app failed: spec.host cannot change from nothing to "localhost": fixed when the object is created'
            ". Put the old value back, or delete the resource and apply it again"
        ],
    ),
    # The answer to another object comes from an API server: see tests/cluster/objects.
    (
        *("KubernetesObject", "spec.manifest.metadata.labels", {"kept-by": "setpoint"}),
        [
            f"KubernetesObject/{name} failed: PATCH {path} (context:tests) was not asked when this world was recorded: "
            "record it again"
            for name, path in (
                ("least", "/api/v1/namespaces/default/configmaps/least"),
                ("much", "/apis/apps/v1/namespaces/default/deployments/web"),
                ("text", "/api/v1/namespaces/default/secrets/text"),
            )
        ],
    ),
]


@pytest.mark.parametrize(("name", "path", "value", "expected"), CHANGES, ids=[name for name, *_ in CHANGES])
def test_a_changed_mapping_is_reported(name: str, path: str, value: Any, expected: list[str]) -> None:
    def change(engine: EngineContext) -> EngineContext:
        (key,) = (one for one in engine.kinds if one[1] == name)
        return replace(engine, kinds={**engine.kinds, key: with_changed_mapping(engine.kinds[key], path, value)})

    assert undeclared_fields(preview_kept_world(change)) == expected


OWNERS: Final = [
    (
        "TrusteeConfig",
        field_at("KbsConfig/least-kbs-config", Path.parse("spec.kbsDeploymentType"), "MicroservicesDeployment"),
        ["TrusteeConfig/least writes: KbsConfig/least-kbs-config.spec.kbsDeploymentType"],
    ),
    (
        "KbsConfig",
        field_at("Service/kbs-service", Path.parse("spec.type"), "LoadBalancer"),
        [f"KbsConfig/{name}-kbs-config writes: Service/kbs-service.spec.type" for name in ("least", "much")],
    ),
]


@pytest.mark.parametrize(("name", "place", "expected"), OWNERS, ids=[name for name, *_ in OWNERS])
def test_a_child_that_is_generated_differently_is_reported(name: str, place: ChildField, expected: list[str]) -> None:
    def change(engine: EngineContext) -> EngineContext:
        (key,) = (one for one in engine.owners if one[1] == name)
        return replace(engine, owners={**engine.owners, key: otherwise(engine.owners[key], with_another(place))})

    assert undeclared_fields(preview_kept_world(change)) == expected


def test_a_changed_mapping_is_tested_for_every_kind_and_owner() -> None:
    assert {name for name, *_ in (*CHANGES, *OWNERS)} == {
        name for group, name in definitions() if (group, name) != REFERENCE_GRANT and group != UNRECORDED
    }


# --- Recording it again -----------------------------------------------------------------------------------------------


def test_the_kept_world_can_be_recorded_again(other_api_server: Access, tmp_path: File) -> None:
    made = unpack_world(record_world(other_api_server, tmp_path), "world.gz")

    assert refs(made.resources) == refs(unpack_world(gzip.compress(KEPT.read_bytes()), str(KEPT)).resources)


def refs(resources: tuple[Resource, ...]) -> set[ResourceRef]:
    return {one.ref for one in resources}
