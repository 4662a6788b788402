"""What a kind gets from its base, and what its types have to say."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.values.paths import Path
from setpoint.engine.kind import RemoteOperation
from setpoint.errors import Bug, ManifestInvalid
from setpoint.kind import (
    Absent,
    BaseKind,
    Default,
    Intent,
    JsonObject,
    KindContext,
    Location,
    Mark,
    Observation,
    PlannedWrite,
    Present,
    Reference,
    RefersTo,
    ResolvedReferences,
    Resource,
    ResourceRef,
    ResourceReference,
    SecretKeyReference,
    SecretValue,
    SpecStruct,
    Tenant,
    ValueFrom,
    referenced_name,
)

GROUP = "shop.example.com"


class Lock(SpecStruct, frozen=True):
    user: str | UnsetType = UNSET
    password: SecretValue | UnsetType = UNSET


class BoxSpec(SpecStruct, frozen=True):
    size: int
    colour: Annotated[str | UnsetType, Default("grey")] = UNSET
    lock: Lock | UnsetType = UNSET
    shelfRef: Annotated[ResourceReference | UnsetType, RefersTo(GROUP, "Shelf"), Mark.IMMUTABLE] = UNSET
    friendRefs: list[Annotated[ResourceReference, RefersTo(GROUP, "Box", must_be_ready=False)]] | UnsetType = UNSET
    certificate: ValueFrom | UnsetType = UNSET
    deletionPolicy: str | UnsetType = UNSET
    resourceID: str | UnsetType = UNSET


class LiveLock(Struct, frozen=True):
    user: str | None = None


class Box(Struct, frozen=True):
    size: int
    colour: str | None = None
    lock: LiveLock | None = None


class EmptyVerbs(BaseKind[BoxSpec, Box]):
    """A box on a shelf.

    More about boxes.
    """

    group = GROUP
    name = "Box"
    uncompared = ("certificate", "deletionPolicy", "resourceID")

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        return Location(self.object_name(resource))

    async def observe(self, location: Location, known: str | None = None) -> Observation[Box]:
        return Absent()

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        return None

    async def update(self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Box]) -> None:
        return None

    async def delete(self, location: Location, before: Present[Box], resource: Resource) -> None:
        return None


KIND = EmptyVerbs(KindContext())


def box(**spec: Any) -> Resource:
    """A box in the namespace `n`."""
    metadata = {"name": "b", "namespace": "n"}
    return Resource({"apiVersion": f"{GROUP}/v1", "kind": "Box", "metadata": metadata, "spec": spec})


def shelf(name: str, **spec: Any) -> Resource:
    """A shelf in the namespace `n`."""
    return Resource({"apiVersion": f"{GROUP}/v1", "kind": "Shelf", "metadata": {"name": name}, "spec": spec})


FROM_SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
SECRET = ResourceRef("", "Secret", "n", "s")


# --- What is found in a spec ------------------------------------------------------------------------------------------


def test_references_and_secrets_are_found_by_the_types_of_fields() -> None:
    friends = [{"name": "one"}, {"external": "two"}, {"name": "three", "namespace": "m"}]
    lock, certificate = {"password": FROM_SECRET}, {"secretKeyRef": {"name": "s", "key": "c"}}

    found = KIND.dependencies(
        box(size=1, shelfRef={"name": "left"}, friendRefs=friends, lock=lock, certificate=certificate)
    )

    assert sorted(found, key=lambda one: one.field) == [
        SecretKeyReference("spec.certificate.secretKeyRef", SECRET, "c"),
        Reference("spec.friendRefs[0]", ResourceRef(GROUP, "Box", "n", "one"), must_be_ready=False),
        Reference("spec.friendRefs[2]", ResourceRef(GROUP, "Box", "m", "three"), must_be_ready=False),
        SecretKeyReference("spec.lock.password", SECRET, "k"),
        Reference("spec.shelfRef", ResourceRef(GROUP, "Shelf", "n", "left")),
    ]


def test_a_secret_takes_the_place_of_its_reference_in_what_is_sent() -> None:
    resource = box(size=1, lock={"user": "me", "password": FROM_SECRET}, shelfRef={"name": "left"}, resourceID="x")

    tree = KIND.declare(resource, ResolvedReferences(secrets={"spec.lock.password": "open sesame"}))

    assert tree == {"spec": {"size": 1, "lock": {"user": "me", "password": {"value": "open sesame"}}}}
    assert KIND.body(tree) == {"size": 1, "lock": {"user": "me", "password": "open sesame"}}
    lock = KIND.wanted_spec(tree).lock
    assert isinstance(lock, Lock)
    assert (lock.user, "sesame" in repr(lock)) == ("me", False)


def test_of_a_write_only_secrets_that_change_are_sent() -> None:
    from setpoint.core.diff import FieldChange
    from setpoint.core.plan import Action

    tree: JsonObject = {"spec": {"size": 1, "lock": {"user": "me", "password": {"value": "open sesame"}}}}
    size, password = (FieldChange(Path.parse(text), 1, 2) for text in ("spec.size", "spec.lock.password"))

    assert KIND.body(tree, PlannedWrite(Action.UPDATE, "update", (size,))) == {"size": 1, "lock": {"user": "me"}}
    assert KIND.body(tree, PlannedWrite(Action.UPDATE, "update", (password,)))["lock"] == {
        **{"user": "me", "password": "open sesame"},
    }


def test_the_live_object_is_seen_in_the_terms_of_the_spec_without_nulls() -> None:
    assert KIND.view(Box(1, None, LiveLock(None))) == {"spec": {"size": 1, "lock": {}}}


def test_a_reference_is_the_external_name_or_that_of_the_resource() -> None:
    resolved = ResolvedReferences({"spec.shelfRef": shelf("left", resourceID="the-left-one")})

    assert referenced_name("spec.shelfRef", ResourceReference(external="x"), resolved) == "x"
    assert referenced_name("spec.shelfRef", ResourceReference(name="left"), resolved) == "the-left-one"


@pytest.mark.parametrize("word", ["ABANDON", "abandon"])
def test_a_deletion_policy_in_the_spec_keeps_the_object(word: str) -> None:
    assert KIND.abandons(box(size=1, deletionPolicy=word))
    assert not KIND.abandons(box(size=1, deletionPolicy="DELETE"))
    assert not KIND.abandons(box(size=1))


def test_no_other_word_is_taken_for_a_wish_to_delete() -> None:
    with pytest.raises(ManifestInvalid, match=r"spec\.deletionPolicy is 'ABANDONN': write ABANDON or DELETE"):
        KIND.abandons(box(size=1, deletionPolicy="ABANDONN"))


def test_a_spec_is_checked_with_all_its_mistakes() -> None:
    with pytest.raises(ManifestInvalid) as found:
        KIND.check(box(size="large", colur="red"))

    assert [str(one) for one in found.value.problems] == [
        "Box n/b: spec.size is text: write a whole number, without quotes",
        "Box n/b: there is no field spec.colur; did you mean spec.colour?",
    ]


def test_a_kind_describes_itself() -> None:
    assert (KIND.name, KIND.version, KIND.definition.description) == ("Box", "v1", "A box on a shelf.")
    assert (KIND.spec_type, KIND.live_type, KIND.revision) == (BoxSpec, Box, 1)


def test_a_kind_is_made_anew_for_a_tenant_with_a_context_of_its_own() -> None:
    bound = KIND.for_tenant(Tenant("n"))

    assert (type(bound), bound.context.tenant, KIND.context.tenant) == (EmptyVerbs, Tenant("n"), None)
    assert bound.context.services is KIND.context.services


async def _poll() -> None:
    await KIND.poll(RemoteOperation("op"))


def test_an_operation_without_a_poll_is_told_as_a_bug_of_the_kind() -> None:
    import asyncio

    with pytest.raises(Bug, match="Box returned the operation 'op', and has no `poll`"):
        asyncio.run(_poll())


# --- What the types have to say ---------------------------------------------------------------------------------------


def kind_of(spec: type[Struct], live: type[Struct], **members: Any) -> None:
    """Defines a kind of these types."""
    namespace = {"__doc__": "A thing.", "group": GROUP, **members}
    type("ThingKind", (BaseKind,), {**namespace, "__orig_bases__": (BaseKind[spec, live],)})  # type: ignore[valid-type]


class Nothing(Struct, frozen=True):
    pass


class OneField(SpecStruct, frozen=True):
    size: int


class WithDefault(SpecStruct, frozen=True):
    size: int = 3


class BareReference(SpecStruct, frozen=True):
    shelfRef: ResourceReference


class MisnamedReference(SpecStruct, frozen=True):
    shelf: Annotated[ResourceReference, RefersTo(GROUP, "Shelf")]


class DeepReference(SpecStruct, frozen=True):
    inside: list[BareReference]


@pytest.mark.parametrize(
    ("spec", "members", "why"),
    [
        (OneField, {}, "OneField.size is no member of Nothing: add it there, mark it Mark.WRITE_ONLY, or list it"),
        (WithDefault, {}, "WithDefault.size is no member of Nothing"),
        (BareReference, {}, "BareReference.shelfRef is a reference: say which kind it refers to"),
        (DeepReference, {}, "BareReference.shelfRef is a reference: say which kind it refers to"),
        (MisnamedReference, {}, "MisnamedReference.shelf is a reference: its name has to end with Ref"),
        (OneField, {"__doc__": None}, "ThingKind has no docstring"),
    ],
)
def test_a_kind_whose_types_would_lose_a_field_cannot_be_defined(
    spec: type[Struct], members: dict[str, Any], why: str
) -> None:
    with pytest.raises(TypeError, match=why):
        kind_of(spec, Nothing, **members)


def test_a_default_of_python_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"WithDefault\.size has the default 3 .*Default\(3\)\] = UNSET"):
        kind_of(WithDefault, OneField)


def test_a_kind_without_a_group_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="has no group"):
        type("K", (BaseKind,), {"__doc__": "A.", "__orig_bases__": (BaseKind[OneField, OneField],)})


def test_a_field_that_is_listed_as_uncompared_need_not_be_in_the_live_type() -> None:
    kind_of(OneField, Nothing, uncompared=("size",))


# --- Laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.laws
@given(st.integers(), st.text() | st.none(), st.text() | st.none())
def test_what_is_declared_and_sent_is_seen_as_declared(size: int, colour: str | None, user: str | None) -> None:
    spec: dict[str, Any] = {"size": size, **({"colour": colour} if colour is not None else {})}
    spec |= {"lock": {"user": user}} if user is not None else {}

    declared = KIND.declare(box(**spec), ResolvedReferences())
    sent: Any = KIND.body(declared)
    live = Box(sent["size"], sent.get("colour"), LiveLock(**sent["lock"]) if "lock" in sent else None)

    assert KIND.view(live) == declared
