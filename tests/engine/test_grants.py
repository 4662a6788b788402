"""References across namespaces of a shared store: what a grant allows, and what is told without one."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.dependency_graph import NodeState, dependency_graph
from setpoint.engine.intent import resolve_ignoring_readiness
from setpoint.engine.kind import SecretKeyReference
from setpoint.engine.owners.children import is_unreconciled, observe_children
from setpoint.engine.references import resolve_available
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.engine.tenancy.reference_grants import GrantedReferences, is_granted_by
from setpoint.errors import Blocked, DependencyNotReady, ManifestInvalid, ReferenceNotGranted, Retry
from simulation.virtual_time import run
from tests.engine.owners.gallery import GalleryOwner
from tests.engine.runner_harness import ADDRESS, FOR_ADDRESS
from tests.engine.shared_store import THING, A, B, SharedStoreHarness, grant, thing_in

FROM_A = thing_in(A, "x")
TO_B = thing_in(B, "y")


def play(scenario: Callable[[SharedStoreHarness], Awaitable[None]]) -> None:
    """Plays `scenario` with a new store."""

    async def main() -> None:
        await scenario(SharedStoreHarness())

    run(main())


def error_of(outcome: object) -> Any:
    assert isinstance(outcome, Stopped), outcome
    return outcome.error


# --- What a grant says ------------------------------------------------------------------------------------------------

words = st.sampled_from(("", "a", "b", "B", "*"))
entries = st.fixed_dictionaries({"group": words, "kind": words}, optional={"name": words, "namespace": words})
refs = st.builds(ResourceRef, words, words, words, words)


def _obvious(spec: Any, dependant: ResourceRef, target: ResourceRef) -> bool:
    froms = [one for one in spec["from"] if all(one[name] == getattr(dependant, name) for name in one)]
    tos = [one for one in spec["to"] if all(one[name] == getattr(target, name) for name in one)]
    return bool(froms and tos)


@given(st.lists(entries, max_size=3), st.lists(entries, max_size=3), refs, refs)
def test_a_grant_allows_exactly_what_it_lists(
    sources: list[dict[str, str]], to: list[dict[str, str]], dependant: ResourceRef, target: ResourceRef
) -> None:
    spec = {"from": sources, "to": to}
    manifest = {**grant(namespace=target.namespace), "spec": spec}
    texts = [text for one in (*sources, *to) for name, text in one.items() if name != "group"]
    is_valid = (
        bool(sources and to)
        and all({"group", "kind", "namespace"} == set(one) for one in sources)
        and all("namespace" not in one for one in to)
        and all(texts)
    )

    assert is_granted_by(Resource(manifest), dependant, target) == (is_valid and _obvious(spec, dependant, target))


ALL_THINGS = [{"group": THING[0], "kind": THING[1]}]
ALL_OF_A: list[Json] = [{**ALL_THINGS[0], "namespace": A}]


@pytest.mark.parametrize(
    "manifest",
    [
        grant(namespace="elsewhere"),
        {**grant(), "kind": "Grant"},
        {**grant(), "apiVersion": "gateway.networking.k8s.io/v1beta1"},
        {**grant(), "metadata": {"name": "g", "namespace": B, "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {**grant(), "spec": None},
        {**grant(), "spec": []},
        {**grant(), "spec": {}},
        {**grant(), "spec": {"from": ALL_OF_A, "to": None}},
        {**grant(), "spec": {"from": ALL_OF_A, "to": [{**ALL_THINGS[0], "name": None}]}},
        {**grant(), "spec": {"from": ALL_OF_A, "to": [{**ALL_THINGS[0], "name": ""}]}},
        {**grant(), "spec": {"from": ALL_OF_A, "to": [{"kind": "Thing"}]}},
        {**grant(), "spec": {"from": ALL_THINGS, "to": ALL_THINGS}},
        # A member that this version does not know may be a restriction.
        {**grant(), "spec": {"from": ALL_OF_A, "to": ALL_THINGS, "unless": "…"}},
    ],
    ids=str,
)
def test_a_grant_that_is_elsewhere_or_gone_or_malformed_grants_nothing(manifest: JsonObject) -> None:
    assert is_granted_by(Resource(grant()), FROM_A, TO_B)
    assert not is_granted_by(Resource(manifest), FROM_A, TO_B)


def test_an_empty_namespace_is_nobody_s_to_grant() -> None:
    async def every_grant(_namespace: str) -> list[Resource]:
        raise AssertionError("no namespace is asked")

    policy = GrantedReferences(every_grant)
    with pytest.raises(ReferenceNotGranted):
        run(policy.require_granted(FROM_A, thing_in("", "y"), "spec"))
    assert run(policy.require_granted(FROM_A, thing_in(A, "y"), "spec")) is None


# --- Without a grant --------------------------------------------------------------------------------------------------

REF = {"$ref": {"kind": "Thing", "namespace": B, "name": "y", "path": ADDRESS}}
REFERRING: dict[str, dict[str, Any]] = {
    "a value": {"wanted": {"host": REF}},
    "an order": {"depends_on": f"Thing/{B}/y"},
    "an order among others": {"depends_on": f"Thing/own,Thing/{B}/y"},
}
NOT_GRANTED = (
    f" refers to Thing {B}/y, and namespace {B} does not grant that to Thing of namespace {A}: refer to the own "
    f"namespace, or let an administrator of {B} create a ReferenceGrant there, with "
    f"from: [{{group: {THING[0]}, kind: Thing, namespace: {A}}}] and to: [{{group: {THING[0]}, kind: Thing, name: y}}]"
)


async def _ready_target(harness: SharedStoreHarness, name: str = "y") -> ResourceRef:
    ref = await harness.apply(B, name, waitFor=FOR_ADDRESS)
    await harness.step(ref)
    harness.service.set_status(name, address="10.0.0.1")
    assert isinstance(await harness.step(ref), Settled)
    return ref


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("how", REFERRING)
def test_nothing_of_another_namespace_is_read_or_told(how: str, is_there: bool) -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        if is_there:
            await _ready_target(harness)
        ref = await harness.apply(A, "x", **REFERRING[how])

        error = error_of(await harness.step(ref))

        assert isinstance(error, ReferenceNotGranted)
        assert error.retry is Retry.ON_CHANGE
        assert str(error).endswith(NOT_GRANTED)
        assert harness.foreign_reads == []
        assert "x" not in harness.service.objects
        found = await harness.store.get(ref)
        assert found is not None
        conditions: Any = found.status["conditions"]
        assert [(one["reason"], one["message"]) for one in conditions] == [("ReferenceNotGranted", str(error))]

    play(scenario)


def test_a_dependant_that_is_blocked_so_is_named_to_its_own_dependants() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        middle = await harness.apply(A, "x", depends_on=f"Thing/{B}/y")
        await harness.step(middle)
        ref = await harness.apply(A, "w", depends_on="Thing/x")

        assert str(error_of(await harness.step(ref))).endswith(NOT_GRANTED)

    play(scenario)


def test_a_secret_of_another_namespace_is_not_read_either() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        secret = ResourceRef("", "Secret", B, "keys")
        metadata: Json = {"name": "keys", "namespace": B}
        manifest: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"k": "v"}}
        await harness.store.apply(manifest)
        harness.store.reads.clear()
        keys = [SecretKeyReference("spec.password", secret, "k")]

        assert (await resolve_available(keys, FROM_A, harness.engine)).secrets == {}
        assert harness.foreign_reads == []
        await harness.store.apply(grant(to=[{"group": "", "kind": "Secret", "name": "keys"}]))
        assert (await resolve_available(keys, FROM_A, harness.engine)).secrets == {"spec.password": "v"}

    play(scenario)


def test_the_sources_of_an_owner_are_not_read_without_a_grant() -> None:
    class Borrowing(GalleryOwner):
        def sources(self, resource: Resource) -> list[ResourceRef]:
            return [ResourceRef("", "ConfigMap", B, "style")]

    async def scenario(harness: SharedStoreHarness) -> None:
        owner = Borrowing()
        metadata: Json = {"name": "show", "namespace": A}
        gallery = Resource({"apiVersion": "web.test/v1", "kind": "Gallery", "metadata": metadata, "spec": {}})

        with pytest.raises(ReferenceNotGranted):
            await observe_children(gallery, owner, harness.engine)
        assert harness.foreign_reads == []

    play(scenario)


def test_the_graph_knows_only_the_name_of_what_is_not_granted() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        await _ready_target(harness)
        blocked = await harness.apply(B, "z", depends_on="Thing/nowhere")
        await harness.step(blocked)
        ref = await harness.apply(A, "x", depends_on=f"Thing/{B}/y Thing/{B}/z")
        resource = await harness.store.get(ref)
        assert resource is not None
        harness.store.reads.clear()

        graph = await dependency_graph([resource], harness.engine)
        states = {node.ref.name: (node.state, node.message) for node in graph.nodes}
        assert (states["y"], states["z"]) == ((NodeState.NOT_GRANTED, ""), (NodeState.NOT_GRANTED, ""))
        assert harness.foreign_reads == []

        await harness.store.apply(grant())
        graph = await dependency_graph([resource], harness.engine)
        states = {node.ref.name: (node.state, node.message) for node in graph.nodes}
        assert (states["y"], states["z"]) == ((NodeState.READY, ""), (NodeState.BLOCKED, ""))

    play(scenario)


# --- With a grant -----------------------------------------------------------------------------------------------------


def test_a_granted_value_arrives_and_is_refused_again_once_the_grant_is_gone() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        await _ready_target(harness)
        await harness.store.apply(grant())
        ref = await harness.apply(A, "x", {"host": REF})
        for _ in range(3):
            assert isinstance(await harness.step(ref), Settled)
        assert harness.service.objects["x"]["spec"] == {"host": "10.0.0.1"}
        # By now the step is idle: it reads nothing but the live object.
        assert harness.store.reads == []

        await harness.store.delete(ResourceRef("setpoint.dev", "ReferenceGrant", B, "grant"))

        assert isinstance(error_of(await harness.step(ref)), ReferenceNotGranted)
        assert harness.foreign_reads == []

    play(scenario)


def test_another_grant_takes_the_place_of_one_that_is_gone() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        await _ready_target(harness)
        await harness.store.apply(grant("first"))
        ref = await harness.apply(A, "x", depends_on=f"Thing/{B}/y")
        assert isinstance(await harness.step(ref), Settled)
        await harness.store.apply(grant("second"))
        await harness.store.delete(ResourceRef("setpoint.dev", "ReferenceGrant", B, "first"))

        assert isinstance(await harness.step(ref), Settled)

    play(scenario)


@pytest.mark.parametrize("how", ["a value", "an order"])
def test_why_a_granted_resource_is_not_ready_is_not_told(how: str) -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        await harness.store.apply(grant())
        target = await harness.apply(B, "y", depends_on="Thing/hidden-4711", waitFor=FOR_ADDRESS)
        ref = await harness.apply(A, "x", **REFERRING[how])
        messages = [str(error_of(await harness.step(ref)))]
        await harness.step(target)
        messages.append(str(error_of(await harness.step(ref))))
        await harness.apply(B, "y", waitFor={**FOR_ADDRESS, "field": "status.hidden-4711"})
        await harness.step(target)
        messages.append(str(error_of(await harness.step(ref))))

        first, *later = messages
        assert set(later) <= {
            f"reference Thing {B}/y is not ready",
            f"waiting for {ADDRESS} of Thing {B}/y: it is not ready",
        }
        assert "4711" not in first + await harness.shown(ref)

    play(scenario)


def test_a_preview_tells_no_more_than_a_step() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        target = await harness.apply(B, "y", waitFor={**FOR_ADDRESS, "field": "status.hidden-4711"})
        ref = await harness.apply(A, "x", {"host": REF})
        await harness.step(target)
        resource = await harness.store.get(ref)
        assert resource is not None

        with pytest.raises(ReferenceNotGranted):
            await resolve_ignoring_readiness(resource, harness.engine)
        await harness.store.apply(grant())
        with pytest.raises(Blocked) as blocked:
            await resolve_ignoring_readiness(resource, harness.engine)
        assert str(blocked.value) == f"waiting for {ADDRESS} of Thing {B}/y: it is not ready"

    play(scenario)


# --- A store of one person --------------------------------------------------------------------------------------------


def test_without_tenants_every_reference_is_allowed_and_a_grant_is_refused() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        engine = replace(harness.engine, tenancy=None)
        harness.engine = engine
        target = await harness.apply(B, "y", depends_on="Thing/nowhere")
        ref = await harness.apply(A, "x", depends_on=f"Thing/{B}/y")
        await harness.step(target)

        error = error_of(await harness.step(ref))

        assert isinstance(error, DependencyNotReady)
        assert "it is blocked itself: reference Thing b/nowhere is not found" in str(error)
        resource = Resource(grant())
        assert not is_unreconciled(resource.ref, engine)
        with pytest.raises(ManifestInvalid, match="a grant is of use only in a cluster"):
            engine.resource_type_of(resource)

    play(scenario)
