"""The lifecycle fixtures of the kinds that live in a policy: some bindings of that of a topic, or all of them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.iam.grants import Grant, bindings_of, grants_in
from setpoint.kinds.gcp.iam.partial_policy import PartialPolicyKind
from setpoint.kinds.gcp.iam.policies import BatchSettings, PolicyClients
from setpoint.kinds.gcp.iam.policy import PolicyKind
from setpoint.localcloud.faults import AddFields
from setpoint.testing import KindFixture, MovedObject, Part, ReferringSpec, Spec, SpecifiedField
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD, held_cloud

NAME, ANOTHER = "some-object", "another-object"
GROUP: Final = "iam.cnrm.cloud.google.com"
TOPICS: Final = f"projects/{PROJECT}/topics"
HOST: Final = "/pubsub.googleapis.com/v1"
# Every observation is a request of its own, and every change is sent at once.
AT_ONCE: Final = BatchSettings(at_once=10**6, reads=10**6)
ROLE: Final = "roles/pubsub.viewer"
OTHERS: Final = Grant("roles/pubsub.admin", "group:others@example.com")
A, B, C = (f"user:{name}@example.com" for name in ("a", "b", "c"))
WITHIN: Final[Spec] = {"resourceRef": {"kind": "PubSubTopic", "external": f"{TOPICS}/{NAME}"}}
_AT_ONCE: Final = "the service answers when it is done: there are no operations"


class PolicyFixture(KindFixture):
    """A policy. In it there is a grant of another writer, where the kind leaves others alone."""

    namespace = NAMESPACE
    annotations: ClassVar[Mapping[str, str]] = {"cnrm.cloud.google.com/project-id": PROJECT}
    verbs: ClassVar = {"get": "get", "query": "get", "post": "update", "put": "update"}
    without: ClassVar[Mapping[Part, str]] = {
        **TOLD,
        Part.COOKIE: "it is stateless: it compares every time",
        Part.IMMUTABLE: "what is fixed is whose policy it is: a change of that is a move",
        Part.LABELS: "a policy has no labels",
        Part.LIST: "its objects are observed one by one",
        Part.OPERATIONS: _AT_ONCE,
        Part.OWN_ABANDON: "the spec does not speak of deletion",
        Part.PROTECTION: "nothing in a policy keeps data from being lost",
        Part.PRUNING: "what a binding leaves out is not there",
        Part.SECRET: "nothing in a policy is secret",
        Part.SLOW_CREATE: _AT_ONCE,
        Part.UNSPECIFIED: "what a binding leaves out is not there",
    }
    kind_type_of: ClassVar[type[Any]]
    background: ClassVar[frozenset[Grant]]
    minimal: ClassVar[Spec] = WITHIN

    async def set_up(self) -> None:
        self.cloud = await self.enter(held_cloud())
        for name in (NAME, ANOTHER):
            assert self.cloud.call("PUT", f"{HOST}/{TOPICS}/{name}", {}).status == 200
            self._set(self.background, name)
        self.cloud.journal.clear()

    def open_client(self) -> GoogleClient:
        settings = GoogleSettings(self.cloud.url, self.cloud.url, GoogleAuth.ANONYMOUS, base=self.cloud.url)
        return GoogleClient(HttpClient(), settings)

    def new_kind(self, client: Any) -> AnyKind:
        kind: AnyKind = self.kind_type_of(client, PolicyClients(AT_ONCE))
        return kind

    # --- The policy ---------------------------------------------------------------------------------------------------

    def grants(self, name: str = NAME) -> frozenset[Grant]:
        """What the policy of a topic grants."""
        found = self.cloud.google.state.policies.get(f"pubsub/{TOPICS}/{name}", {})
        return grants_in(found.get("bindings", ()))

    def _set(self, grants: frozenset[Grant], name: str = NAME) -> None:
        body = {"policy": {"bindings": bindings_of(grants), "version": 3}}
        assert self.cloud.call("POST", f"{HOST}/{TOPICS}/{name}:setIamPolicy", body).status == 200
        self.cloud.journal.clear()

    def objects(self) -> list[str]:
        return [name for name in (NAME, ANOTHER) if self.grants(name) - self.background]

    def read(self, member: str) -> Json | Missing:
        found = self.grants() - self.background
        return self.in_spec(bindings_of(found)) if found else MISSING

    def drift(self, member: str, value: Json) -> None:
        assert isinstance(value, list)
        self._set(self.background | grants_in(self.in_policy(value)))

    def create_outside(self, value: Json) -> None:
        self.drift("bindings", value)

    def delete_outside(self) -> None:
        self._set(self.background)

    def add_field(self) -> None:
        added = {"addedTomorrow": {"x": 1}}
        self.cloud.inject(AddFields(added))
        # In requests a policy is inside of another object.
        self.cloud.inject(AddFields({"policy": added}, "no response"))

    def in_spec(self, bindings: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Bindings of a policy as a spec has them."""
        return [*bindings]

    def in_policy(self, bindings: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        """Bindings of a spec as a policy has them."""
        return bindings


def _referring(spec: Spec) -> ReferringSpec:
    return ReferringSpec(
        {"resourceRef": {"kind": "PubSubTopic", "name": NAME}, **spec},
        {
            "apiVersion": "pubsub.cnrm.cloud.google.com/v1beta1",
            "kind": "PubSubTopic",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {},
        },
        f"reference PubSubTopic team/{NAME}",
        {"setpoint": {"location": f"{TOPICS}/{NAME}"}},
    )


def _binding(*members: Any) -> list[Any]:
    return [{"members": [*members], "role": ROLE}]


def _partial(*members: str) -> list[Any]:
    return _binding(*({"member": one} for one in members))


class PartialPolicyFixture(PolicyFixture):
    """Some bindings of the policy of a topic, in which another writer has some, too."""

    ref = ResourceRef(GROUP, "IAMPartialPolicy", NAMESPACE, NAME)
    kind_type_of = PartialPolicyKind
    bare: ClassVar[Spec] = {**WITHIN, "bindings": _partial(A)}
    background = frozenset({OTHERS})
    # What is taken out of the spec is no longer the resource's own: another writer may add it.
    field = SpecifiedField("spec.bindings", _partial(A, B, C), _partial(A, B), _partial(A))
    moved = MovedObject(
        {"resourceRef": {"kind": "PubSubTopic", "external": f"{TOPICS}/{ANOTHER}"}, "bindings": _partial(A, B, C)},
        ANOTHER,
    )
    referring = _referring({"bindings": _partial(A, B, C)})
    outputs: ClassVar[Mapping[str, Json]] = {"lastAppliedBindings": _binding(A, B, C)}

    def move_output(self) -> Mapping[str, Json]:
        one_more = Grant("roles/pubsub.editor", C)
        self._set(self.grants() | {one_more})
        return {"allBindings": [*bindings_of(self.grants())]}

    def in_spec(self, bindings: Sequence[Mapping[str, Any]]) -> list[Any]:
        return [{**one, "members": [{"member": member} for member in one["members"]]} for one in bindings]

    def in_policy(self, bindings: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
        return [{**one, "members": [member["member"] for member in one["members"]]} for one in bindings]


class WholePolicyFixture(PolicyFixture):
    """All of the policy of a topic."""

    without: ClassVar[Mapping[Part, str]] = {
        **PolicyFixture.without,
        Part.MOVING_OUTPUT: "the spec has all of the policy",
    }
    ref = ResourceRef(GROUP, "IAMPolicy", NAMESPACE, NAME)
    outputs: ClassVar[Mapping[str, Json]] = {"lastAppliedBindings": _binding(A, B)}
    kind_type_of = PolicyKind
    bare: ClassVar[Spec] = {**WITHIN, "bindings": _binding(A)}
    background = frozenset()
    field = SpecifiedField("spec.bindings", _binding(A, B), _binding(A, C), _binding(A))
    moved = MovedObject(
        {"resourceRef": {"kind": "PubSubTopic", "external": f"{TOPICS}/{ANOTHER}"}, "bindings": _binding(A, B)}, ANOTHER
    )
    referring = _referring({"bindings": _binding(A, B)})
