"""A CustomResourceDefinition for each kind, from its types."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import Struct

from setpoint.app import definitions
from setpoint.core.values.canonical import same
from setpoint.engine import state
from setpoint.engine.kind import CrdDetails
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.kinds.field_docs import field_docs
from setpoint.stores.kubernetes.crds import crd_for
from tests.engine.gadgets import GadgetKind, Service
from tests.kinds.full_responses import PAGES, kind_of, outputs_of

GADGET: Any = crd_for(GadgetKind(Service()), field_docs)
GRANT: Any = definitions()[REFERENCE_GRANT]
# The kinds that are reconciled.
ALL: dict[str, Any] = {name[1]: tree for name, tree in definitions().items() if name != REFERENCE_GRANT}


def schema_in(definition: Any) -> Any:
    (version,) = definition["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def schemas_in(schema: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every schema in a schema, under its path."""
    yield at, schema
    for name, below in schema.get("properties", {}).items():
        yield from schemas_in(below, f"{at}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from schemas_in(schema[name], f"{at}[]")


def test_a_kind_of_a_plugin_gets_its_crd_from_its_types() -> None:
    names = GADGET["spec"]["names"]

    assert GADGET["metadata"]["name"] == "gadgets.test.setpoint.dev"
    assert names == {
        "kind": "Gadget",
        "listKind": "GadgetList",
        "plural": "gadgets",
        "singular": "gadget",
        "categories": ["setpoint"],
    }
    assert GADGET["spec"]["scope"] == "Namespaced"
    assert schema_in(GADGET)["properties"]["spec"]["properties"]["size"] == {"type": "integer", "format": "int64"}


def test_a_status_accepts_any_field_unless_the_kind_describes_it() -> None:
    status = schema_in(GADGET)["properties"]["status"]

    assert status["x-kubernetes-preserve-unknown-fields"] is True
    assert "conditions" in status["properties"]


class Shown(Struct):
    url: str
    """Where."""


def test_an_empty_status_is_valid() -> None:
    kind = replace(GadgetKind(Service()), definition=CrdDetails("A gadget.", Shown, plural="gadgetry"))
    definition: Any = crd_for(kind, field_docs)

    status = schema_in(definition)["properties"]["status"]
    assert status["properties"]["url"] == {"description": "Where.", "type": "string"}
    assert not {"required", "x-kubernetes-preserve-unknown-fields"} & set(status)
    assert schema_in(definition)["description"] == "A gadget."
    assert definition["metadata"]["name"] == "gadgetry.test.setpoint.dev"


def test_required_fields_of_a_status_are_those_of_the_definition() -> None:
    kind = replace(GadgetKind(Service()), definition=CrdDetails(outputs=Shown, required=["url"]))

    assert schema_in(crd_for(kind, field_docs))["properties"]["status"]["required"] == ["url"]


@pytest.mark.parametrize(
    ("kind", "keeps_one"),
    [
        ("SQLInstance", True),
        ("StorageBucket", True),
        ("KubernetesObject", True),
        ("TrusteeConfig", True),
        ("KbsConfig", True),
        ("SQLDatabase", False),
        ("SQLUser", False),
    ],
)
def test_the_status_of_a_kind_has_a_cookie_if_resources_keep_one(kind: str, keeps_one: bool) -> None:
    (definition,) = (one for (_, name), one in definitions().items() if name == kind)
    members = schema_in(definition)["properties"]["status"]["properties"]

    assert ("lastModifiedCookie" in members) is keeps_one
    assert members["setpoint"]["x-kubernetes-map-type"] == "atomic"


def test_the_status_is_a_subresource() -> None:
    (version,) = GADGET["spec"]["versions"]

    assert version["subresources"] == {"status": {}}
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)


def test_a_type_that_is_not_reconciled_has_no_status() -> None:
    (version,) = GRANT["spec"]["versions"]

    assert set(version) == {"name", "served", "storage", "schema"}
    assert set(schema_in(GRANT)["properties"]) == {"apiVersion", "kind", "metadata", "spec"}


def test_every_field_of_a_grant_is_described_required_and_closed() -> None:
    spec = schema_in(GRANT)["properties"]["spec"]
    places = list(schemas_in(spec, "spec"))

    assert [path for path, schema in places if not path.endswith("]") and not schema.get("description")] == []
    assert [path for path, schema in places if {"default", "x-kubernetes-preserve-unknown-fields"} & set(schema)] == []
    assert (spec["required"], spec["properties"]["from"]["items"]["required"]) == (
        ["from", "to"],
        ["group", "kind", "namespace"],
    )
    assert spec["properties"]["to"]["items"]["required"] == ["group", "kind"]
    # An empty name would be neither one resource nor all of them.
    assert spec["properties"]["to"]["items"]["properties"]["name"]["minLength"] == 1


def test_a_list_shows_ready_reason_and_age() -> None:
    (version,) = GADGET["spec"]["versions"]
    columns = version["additionalPrinterColumns"]

    assert [one["name"] for one in columns if not one.get("priority")] == ["Ready", "Reason", "Status Age", "Age"]
    assert [one["name"] for one in columns if one.get("priority")] == ["Found", "Contested", "Last Look", "Message"]


def test_the_engine_s_fields_are_in_every_status() -> None:
    members = schema_in(GADGET)["properties"]["status"]["properties"]
    kept = {state.COOKIE, state.SERVER_DEFAULTS, state.RECONCILE_HANDLED, state.ENGINE_STATE}

    assert set(members) == {"conditions", "observedGeneration", *kept}
    assert members["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize(
    ("kind", "short"),
    [
        ("SQLInstance", "gcpsqlinstance"),
        ("SQLDatabase", "gcpsqldatabase"),
        ("SQLUser", "gcpsqluser"),
        ("StorageBucket", "gcpstoragebucket"),
    ],
)
def test_names_are_those_of_config_connector(kind: str, short: str) -> None:
    names = ALL[kind]["spec"]["names"]

    assert names["shortNames"] == [short, f"{short}s"]
    assert names["categories"] == ["gcp", "setpoint"]


def test_a_spec_may_be_left_out_where_nothing_in_it_is_required() -> None:
    required = {name: schema_in(tree).get("required", []) for name, tree in ALL.items()}

    assert required == {
        "KbsConfig": [],
        "TrusteeConfig": [],
        "KubernetesObject": ["spec"],
        "SQLInstance": ["spec"],
        "SQLDatabase": ["spec"],
        "SQLUser": ["spec"],
        "StorageBucket": [],
        **{name: ["spec"] for name in ("IAMPartialPolicy", "IAMPolicy", "IAMPolicyMember", "IAMServiceAccountKey")},
    }


@pytest.mark.parametrize("kind", ALL)
def test_every_field_is_described(kind: str) -> None:
    properties = schema_in(ALL[kind])["properties"]
    places = [*schemas_in(properties["spec"], "spec"), *schemas_in(properties["status"], "status")]

    assert [path for path, schema in places if not path.endswith("]") and not schema.get("description")] == []


@pytest.mark.parametrize("kind", ALL)
def test_nothing_has_a_default(kind: str) -> None:
    """A default of the API server would be part of the intent: the same manifest would differ between stores."""
    assert [path for path, schema in schemas_in(schema_in(ALL[kind])) if "default" in schema] == []


# Fields that accept any value: an object of a cluster is validated by its own kind.
OPEN = {
    "KubernetesObject": [
        *(".spec.manifest", ".spec.waitFor.fieldValue[]", ".spec.waitFor.condition"),
        *(".status.output.value", ".status.output.last"),
    ],
    # Last generated, by child.
    "TrusteeConfig": [".status.lastGenerated[]"],
}


@pytest.mark.parametrize("kind", ALL)
def test_only_the_engine_s_state_accepts_any_field(kind: str) -> None:
    open_ = [path for path, one in schemas_in(schema_in(ALL[kind])) if "x-kubernetes-preserve-unknown-fields" in one]

    assert open_ == [*OPEN.get(kind, ()), ".status.setpoint[]"]


@pytest.mark.parametrize("kind", ["SQLDatabase", "SQLInstance", "SQLUser", "StorageBucket"])
def test_every_immutable_field_has_a_rule(kind: str) -> None:
    immutable = [one for _, one in schemas_in(schema_in(ALL[kind])) if "Immutable." in one.get("description", "")]

    assert immutable
    assert [one for one in immutable if "oldSelf" not in str(one["x-kubernetes-validations"])] == []


def lacking(value: Any, schema: Any, at: str = "status") -> list[str]:
    """The fields of `value` that the API server would drop."""
    if isinstance(value, list):
        return [path for one in value for path in lacking(one, schema["items"], f"{at}[]")]
    if not isinstance(value, dict):
        return []
    known = schema.get("properties", {})
    deeper = (lacking(one, known[name], f"{at}.{name}") for name, one in value.items() if name in known)
    return [f"{at}.{name}" for name in value if name not in known] + [path for paths in deeper for path in paths]


@pytest.mark.parametrize("page", PAGES)
def test_every_field_of_a_status_is_in_the_crd(page: str) -> None:
    status = schema_in(ALL[kind_of(page).name])["properties"]["status"]

    assert lacking(outputs_of(page), status) == []
    assert lacking({"selfie": {}}, status) == ["status.selfie"]


def test_a_crd_is_reproducible() -> None:
    assert same([*definitions().values()], [*definitions().values()])


def test_a_crd_fits_into_an_annotation() -> None:
    """Client-side apply keeps the CRD in an annotation, which is limited to 262,144 bytes."""
    assert max(len(str(tree)) for tree in ALL.values()) < 100_000
