"""References to values of other resources in a manifest."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.paths import Path
from setpoint.engine.kind import ANY_GROUP, ResolvedReferences, SecretKeyReference, ValueReference
from setpoint.engine.resource import ResourceRef
from setpoint.errors import Blocked, ManifestInvalid
from setpoint.kinds.kubernetes_object.manifest import ManifestTemplate
from tests.kinds.kubernetes_object.declared_objects import MAP, Tree, check, kind, resource

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
TREES = st.recursive(
    SCALARS, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=4), inside, max_size=3)
)
# Text in which a reference may begin, end or be escaped anywhere.
PIECES = st.lists(st.sampled_from(("$", "{", "}", "${", "$$", "ref:", "A/b:", "c", ":", "/")), max_size=8).map("".join)


def manifest(tree: Any) -> ManifestTemplate:
    return ManifestTemplate(tree, "spec.manifest", "shop")


def target(kind: str = "A", name: str = "b", namespace: str = "shop", group: str = ANY_GROUP) -> ResourceRef:
    return ResourceRef(group, kind, namespace, name)


@pytest.mark.laws
@given(TREES)
def test_a_manifest_without_references_is_unchanged(tree: Any) -> None:
    if "ref" not in str(tree):
        assert manifest(tree).dependencies() == ()
        assert same([manifest(tree).substituted({})], [tree])


@pytest.mark.laws
@given(TREES)
def test_a_reference_is_replaced_by_the_whole_value(value: Any) -> None:
    tree = {"a": [{"$ref": {"kind": "A", "name": "b", "path": "c"}}]}
    (dependency,) = manifest(tree).dependencies()

    assert same(manifest(tree).substituted({dependency.field: value}), {"a": [value]})


@pytest.mark.laws
@given(PIECES)
def test_every_reference_in_a_text_is_found_or_the_text_is_refused(text: str) -> None:
    try:
        dependencies = manifest({"t": text}).dependencies()
    except ManifestInvalid:
        assert "${ref:" in text
        return
    filled = manifest({"t": text}).substituted({dependency.field: "!" for dependency in dependencies})

    assert isinstance(filled, dict)
    assert str(filled["t"]).count("!") == len(re.findall(r"(?<!\$)\$\{ref:[^:{}]*:[^{}]+\}", text)) or "$$${" in text


@pytest.mark.laws
@given(SCALARS.filter(lambda one: one is not None and not isinstance(one, float)))
def test_a_scalar_is_written_into_text_as_json(value: Any) -> None:
    text = "<${ref:A/b:c}>"
    (dependency,) = manifest(text).dependencies()

    written = value if isinstance(value, str) else {True: "true", False: "false"}.get(value, str(value))
    expected = written if not isinstance(value, int) or isinstance(value, bool) else str(value)
    assert manifest(text).substituted({dependency.field: value}) == f"<{expected}>"


def test_a_reference_names_kind_namespace_name_group_and_path() -> None:
    tree = {
        "spec": {
            "ip": {"$ref": {"kind": "A", "name": "b", "path": "status.x[0]"}},
            "host": {"$ref": {"kind": "A", "name": "b", "namespace": "n", "group": "g.io", "path": "status.h"}},
        }
    }

    assert manifest(tree).dependencies() == (
        ValueReference("spec.manifest.spec.ip.$ref", target(), Path.parse("status.x[0]")),
        ValueReference("spec.manifest.spec.host.$ref", target(namespace="n", group="g.io"), Path.parse("status.h")),
    )


def test_a_text_may_have_several_references() -> None:
    tree = {"url": "http://${ref:A/b:status.ip}:${ref:A.g.io/n/b:spec.port}/$${ref:x}"}
    here = "spec.manifest.url"

    assert manifest(tree).dependencies() == (
        ValueReference(f"{here} ${{ref:A/b:status.ip}}", target(), Path.parse("status.ip")),
        ValueReference(
            f"{here} ${{ref:A.g.io/n/b:spec.port}}", target(namespace="n", group="g.io"), Path.parse("spec.port")
        ),
    )
    values: Tree = {f"{here} ${{ref:A/b:status.ip}}": "192.0.2.1", f"{here} ${{ref:A.g.io/n/b:spec.port}}": 80}
    assert manifest(tree).substituted(values) == {"url": "http://192.0.2.1:80/${ref:x}"}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"$ref": {"kind": "A", "name": "b"}}, "spec.manifest.a.$ref.path is missing"),
        ({"$ref": {"kind": "A", "name": "b", "pth": "c"}}, "did you mean path?"),
        ({"$ref": {"kind": 1, "name": "b", "path": "c"}}, "spec.manifest.a.$ref.kind: write text"),
        ({"$ref": {"kind": "A", "name": "b", "path": "c["}}, "spec.manifest.a.$ref.path: the path 'c['"),
        ({"$ref": {"kind": "A", "name": "b", "path": "c"}, "more": 1}, "leave out what is beside it"),
        ("${ref:A/b}", "write ${ref:KIND/NAME:PATH}"),
        ("${ref:A:c}", "write ${ref:KIND/NAME:PATH}"),
        ("${ref:A//b:c}", "write ${ref:KIND/NAME:PATH}"),
        ("${ref:A/b:c[}", "breaks off"),
        ("${ref:", "write ${ref:KIND/NAME:PATH}"),
    ],
)
def test_an_invalid_reference_is_refused_with_its_path(tree: Any, message: str) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        check({**MAP, "a": tree})

    assert message in str(caught.value)
    assert "spec.manifest.a" in str(caught.value)


def test_a_ref_member_with_a_text_value_is_no_reference() -> None:
    schema = {"$ref": "#/definitions/x"}

    assert manifest(schema).dependencies() == ()
    assert manifest(schema).substituted({}) == schema


def test_a_missing_value_blocks() -> None:
    tree: Tree = {**MAP, "data": {"a": {"$ref": {"kind": "A", "name": "b", "path": "c"}}}}

    with pytest.raises(Blocked, match=r"the value at c of A shop/b is not known yet"):
        kind().locate(resource(tree, cluster={"context": "x"}), ResolvedReferences())


def test_a_kubeconfig_in_a_secret_is_a_dependency() -> None:
    key = {"valueFrom": {"secretKeyRef": {"name": "access", "key": "config"}}}

    assert kind().dependencies(resource(MAP, cluster={"kubeconfig": key})) == (
        SecretKeyReference("spec.cluster.kubeconfig", ResourceRef("", "Secret", "shop", "access"), "config"),
    )
