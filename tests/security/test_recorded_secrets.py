"""No secret value is in a recorded world, nor in the history that an export carries along."""

import asyncio
import base64
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from setpoint.app import AppSettings, StoreAccess, open_engine
from setpoint.app.kinds import all_types
from setpoint.cli.commands.transfer import ExportOptions, _export
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.core.redaction import LAST_APPLIED, redact_record
from setpoint.core.schema.shape import (
    AtomicList,
    Field,
    Keyed,
    KeyedList,
    MapShape,
    Mark,
    ObjectShape,
    Shape,
    shape_of,
)
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.yaml_documents import write_document
from setpoint.kind import SecretSource
from setpoint.preview import make_recording
from setpoint.replay.masking import SECRET_FIELDS, Masker

SECRET: Final = "hunter2-hunter2"
ENCODED: Final = base64.b64encode(SECRET.encode()).decode()
ITEM: Final = {"metadata": {"name": "s"}, "data": {"password": ENCODED}}
NESTED: Final[dict[str, Any]] = {"apiVersion": "v1", "kind": "Secret", **ITEM, "stringData": {"a": SECRET}}
LISTED: Final[dict[str, Any]] = {"apiVersion": "v1", "kind": "List", "items": [NESTED]}
TEXT: Final = write_document(NESTED)
ANNOTATED: Final = {LAST_APPLIED: json.dumps({"kind": "SQLUser", "spec": {"password": {"value": SECRET}}})}
MANIFESTS: Final[dict[str, Any]] = {
    "secret": NESTED,
    "text": TEXT,
    "two documents": f"{TEXT}---\n{TEXT}",
    "not yaml": f"{TEXT}\n  broken: [{SECRET}\n",
    "a list": LISTED,
    "a list of secrets": {"apiVersion": "v1", "kind": "SecretList", "items": [ITEM]},
    "deep": {"apiVersion": "example.com/v1", "kind": "Set", "spec": {"templates": [NESTED, LISTED]}},
    "data that is no map": {**NESTED, "data": SECRET, "stringData": [SECRET, {"a": [SECRET]}]},
    "a number": {**NESTED, "stringData": {"pin": 47114711}},
    "annotated": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": ANNOTATED}},
}


def step_of(*paths: str) -> dict[str, Any]:
    """The record of a step that wrote the secret to these fields."""
    changes = [{"path": path, "rule": "spec", "before": SECRET, "after": {"value": SECRET}} for path in paths]
    write = {"action": "update", "name": "update", "changes": changes}
    heading = {"at": "2026-01-01T00:00:00Z", "trigger": "edit", "decision": "drifted", "cookie": {"before": None}}
    return {**heading, "writes": [write], "kept": changes, "withheld": changes}


def is_hidden(text: str) -> bool:
    return SECRET not in text and ENCODED not in text and "47114711" not in text


@pytest.mark.parametrize("name", MANIFESTS)
def test_no_manifest_keeps_its_secret_in_a_recording(name: str) -> None:
    masked = Masker().mask({"kind": "KubernetesObject", "spec": {"manifest": MANIFESTS[name]}})

    assert is_hidden(json.dumps(masked))


@given(st.sampled_from(sorted(SECRET_FIELDS)), st.integers(0, 3))
def test_no_step_record_keeps_a_secret_in_a_recording(name: str, depth: int) -> None:
    status: Any = {"setpoint": {"location": "l", "step": step_of(f"spec.{name}", "spec.manifest.data.a", "spec.other")}}
    for _ in range(depth):
        status = {"inside": [status]}
    masked = Masker().mask({"status": status})

    assert is_hidden(json.dumps(masked))


class Options(Struct):
    """Fields of a kind that a plug-in brings, none of which has a name that tells that it is secret."""

    name: str
    seed: Annotated[SecretSource | UnsetType, Mark.WRITE_ONLY] = UNSET


class OptionsSpec(Struct):
    """A spec with write-only fields at its top, in a list, in a map, and as a map."""

    seed: Annotated[SecretSource | UnsetType, Mark.WRITE_ONLY] = UNSET
    keyed: Annotated[list[Options] | UnsetType, Keyed("name")] = UNSET
    listed: list[Options] | UnsetType = UNSET
    by_name: dict[str, Options] | UnsetType = UNSET
    hidden: Annotated[dict[str, SecretSource] | UnsetType, Mark.WRITE_ONLY] = UNSET


class OptionsTree(Struct):
    """A resource of that kind."""

    spec: OptionsSpec


INLINE: Final[Json] = {"value": SECRET}
REFERENCE: Final[Json] = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def options_with(value: Json) -> dict[str, Json]:
    """A spec that has the value in every write-only field."""
    one: Json = {"name": "a", "seed": value}
    return {"seed": value, "keyed": [one], "listed": [one], "by_name": {"a": one}, "hidden": {"x": value}}


def test_a_write_only_field_of_any_name_is_masked_in_a_recording() -> None:
    masker = Masker()

    masked = masker.mask_resource({"kind": "Options", "spec": options_with(INLINE)}, shape_of(OptionsTree))

    assert masked == {"kind": "Options", "spec": options_with({"value": masker.mask_text(SECRET)})}


def test_a_reference_in_a_write_only_field_is_recorded_as_it_is() -> None:
    document: JsonObject = {"kind": "Options", "spec": options_with(REFERENCE)}

    assert Masker().mask_resource(document, shape_of(OptionsTree)) == document


@pytest.mark.parametrize("value", [SECRET, [SECRET], {"valueFrom": SECRET}, {"valueFrom": {"other": {"a": SECRET}}}])
def test_a_write_only_field_that_is_not_as_its_type_says_is_masked(value: Json) -> None:
    masked = Masker().mask_resource({"kind": "Options", "spec": options_with(value)}, shape_of(OptionsTree))

    assert is_hidden(json.dumps(masked))


def write_only_names(shape: Shape, name: str = "", inside: tuple[Shape, ...] = ()) -> Iterator[str]:
    """The names of the write-only fields of a type, at any depth; a type may contain itself."""
    if shape in inside:
        return
    match shape:
        case ObjectShape(fields=fields):
            below = list(fields.items())
        case MapShape(value=value) | KeyedList(item=value):
            below = [(name, value)]
        case AtomicList(item=item):
            below = [(name, Field(item))]
        case _:
            return
    for own, one in below:
        yield from (own,) if one.write_only else write_only_names(one.shape, own, (*inside, shape))


def test_every_write_only_field_of_every_kind_is_masked_in_responses_too() -> None:
    names = {name for one in all_types().values() for name in write_only_names(shape_of(one.tree_type))}

    # A certificate without its key is public.
    assert names - SECRET_FIELDS == {"certificate", "certificatePem"}
    assert {"password", "secretData", "sharedSecret", "rawKey"} <= names


def test_the_copy_that_kubectl_keeps_is_in_no_recording_of_any_object() -> None:
    for kind in ("SQLUser", "ConfigMap", "Secret", "Deployment"):
        shown = json.dumps(
            Masker().mask({"kind": kind, "metadata": {"name": "a", "annotations": {**ANNOTATED, "b": "c"}}})
        )

        assert LAST_APPLIED not in shown
        assert '"b": "c"' in shown


def test_a_step_record_keeps_what_is_no_secret() -> None:
    change = {"path": "spec.tier", "rule": "spec", "before": "a", "after": "b"}
    nested: Any = {"path": "spec.user", "rule": "spec", "after": {"name": "ann", "password": SECRET}}
    hidden = {"path": "spec.apiKey", "rule": "spec", "before": SECRET}

    assert redact_record({"writes": [change, nested, hidden]}, whole=False) == {
        "writes": [
            change,
            {**nested, "after": {"name": "ann", "password": "(redacted)"}},
            {**hidden, "before": "(redacted)"},
        ]
    }


# --- Whole stores -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> AppSettings:
    """A store with a user, and an object of each kind of manifest, with records of steps that wrote their secrets."""
    folder = tmp_path_factory.mktemp("store")
    environment = {"SETPOINT_GCP_AUTH": "anonymous", "HOME": str(folder), "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9"}
    sql = {"CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": "http://127.0.0.1:9/"}
    settings = AppSettings(f"sqlite:///{folder}/state.db", environment={**environment, **sql})

    async def fill() -> None:
        async with open_engine(settings, StoreAccess.WRITE) as engine:
            for tree in documents():
                resource = await engine.store.apply(tree)
                of_secret = ('data["tls.key"]', "stringData.a") if tree["kind"] == "KubernetesObject" else ()
                step = step_of("spec.password", "spec.password.value", "spec.rootPassword", *of_secret)
                await engine.store.update_status(resource, {"setpoint": {"step": step}})

    asyncio.run(fill())
    return settings


def documents() -> list[dict[str, Any]]:
    user = {"apiVersion": "sql.cnrm.cloud.google.com/v1beta1", "kind": "SQLUser"}
    password = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}
    found: list[dict[str, Any]] = [
        {
            **user,
            "metadata": {"name": "ann", "annotations": ANNOTATED},
            "spec": {"instanceRef": {"external": "db"}, "password": password},
        }
    ]
    paused = {"setpoint.dev/management": "paused"}
    # Its type alone says that its certificate is not to be shown.
    found.append(
        {
            "apiVersion": "compute.cnrm.cloud.google.com/v1beta1",
            "kind": "ComputeSSLCertificate",
            "metadata": {"name": "certificate", "annotations": {"cnrm.cloud.google.com/project-id": "p", **paused}},
            "spec": {"location": "global", "certificate": INLINE, "privateKey": INLINE},
        }
    )
    for number, (name, manifest) in enumerate(MANIFESTS.items()):
        if name != "not yaml":
            tree = {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject"}
            # Nothing is read of a cluster: there is none here.
            metadata = {"name": f"o{number}", "annotations": {**ANNOTATED, **paused}}
            found.append({**tree, "metadata": metadata, "spec": {"manifest": manifest}})
    return found


def test_no_secret_is_in_a_recorded_world(store: AppSettings) -> None:
    recording = asyncio.run(make_recording(store, lambda _: None))

    text = gzip.decompress(recording.world).decode()
    assert recording.resources == len(documents())
    assert is_hidden(text)
    assert LAST_APPLIED not in text


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_no_history_of_an_export_has_a_secret(form: str, store: AppSettings, tmp_path: Path) -> None:
    console = SafeConsole(file=io.StringIO(), width=200)
    request = CommandRequest(store, console, targets=("SQLUser/ann",), output=form)

    asyncio.run(_export(request, ExportOptions(with_secrets=False, pause=False, to="-")))

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "(redacted)" in text
    assert is_hidden(text)
    assert LAST_APPLIED not in text


def test_the_steps_of_an_exported_secret_have_no_values(store: AppSettings) -> None:
    console = SafeConsole(file=io.StringIO(), width=200)
    request = CommandRequest(store, console, targets=("KubernetesObject/o1",), output="json")

    asyncio.run(_export(request, ExportOptions(with_secrets=True, pause=False, to="-")))

    printed = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    statuses = [json.dumps(json.loads(line).get("status")) for line in printed]
    assert any("(redacted)" in one for one in statuses)
    assert all(map(is_hidden, statuses))
