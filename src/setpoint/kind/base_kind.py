"""The base of kinds: what most kinds do the same way. An author adds the types, the location and four verbs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Generic, TypeAlias, TypeVar, cast, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import FieldInfo
from msgspec.structs import fields as struct_fields

from setpoint.core.overlay import EffectiveState, effective_state, struct_of
from setpoint.core.plan import DEFAULT_PLAN_OPTIONS, PlannedWrite, PlanOptions
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import field_at, paths_of, shape_of
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path, remove_at, set_at
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Dependency,
    Intent,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
    Written,
)
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import Bug
from setpoint.kind.kind_context import KindContext
from setpoint.kind.spec_references import (
    check_references,
    dependencies_in,
    is_reference,
    object_name,
    plain_secrets,
    without_nulls,
)
from setpoint.kind.typed_spec import decode_spec, field_invalid

S = TypeVar("S", bound=Struct)
L = TypeVar("L", bound=Struct)
# What `observe` returns.
Observation: TypeAlias = Absent | Present[L] | Unchanged
_ABANDON: Final = "abandon"
_SECRET_KEY_REF: Final = "secretKeyRef"


class BaseKind(ABC, Generic[S, L]):
    """A kind whose spec is an S and whose live object is an L. It is made with a KindContext, and with nothing else.

    A field of the spec is compared with the member of the live object that has the same name. A field that the live
    type lacks is write-only, a reference, or listed in `uncompared`. Capabilities such as lists, waits and
    watches are added by defining their methods: see setpoint.engine.capabilities.
    """

    # --- What it is called; `name` is that of the class, without `Kind`, when left out.
    group: str
    version: str = "v1"
    name: str
    # --- What a CustomResourceDefinition says beyond the types. Its description is the docstring of the class.
    outputs_type: type[Struct] | None = None
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    plural: str = ""
    # --- How it is reconciled.
    # With exact defaults a kind can do without a cookie.
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    # Raised when the kind reads a manifest or a live object in another way: no earlier cookie hides the difference.
    revision: int = 1
    # Annotations that change the meaning of a manifest.
    annotations: Sequence[str] = ()
    # Fields of the spec that say where the object is or how the resource is handled: not compared, and not sent.
    uncompared: Sequence[str] = ("resourceID", "deletionPolicy")
    # Whether every write goes out through JsonService: then previews show the requests that would be sent.
    writes_through_clients: bool = False
    # Whether it reads Secrets by `context.secret`, beside those that a spec names.
    reads_secrets: bool = False
    # --- Made from the type arguments and the docstring.
    spec_type: type[S]
    live_type: type[L]
    tree_type: type[Struct]
    definition: CrdDetails

    def __init__(self, context: KindContext) -> None:
        self.context = context

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        types = _type_arguments(cls)
        if types is None:
            return
        cls.spec_type, cls.live_type = cast("type[S]", types[0]), cast("type[L]", types[1])
        if "name" not in cls.__dict__ and not hasattr(cls, "name"):
            cls.name = cls.__name__.removesuffix("Kind")
        if not hasattr(cls, "group"):
            raise TypeError(f"{cls.__name__} has no group: write group = 'shop.example.com', a domain of your own")
        if "tree_type" not in cls.__dict__:
            cls.tree_type = msgspec.defstruct(
                f"{cls.name}Tree", [("spec", cls.spec_type)], module=cls.__module__, frozen=True
            )
        if "definition" not in cls.__dict__:
            cls.definition = CrdDetails(
                first_paragraph(cls), cls.outputs_type, cls.short_names, cls.categories, cls.plural
            )
        check_references(cls.spec_type)
        shape_of(cls.tree_type)
        if cls.declare is BaseKind.declare and cls.view is BaseKind.view:
            _check_fields(cls.spec_type, cls.live_type, cls.uncompared)

    # --- What the author writes ---------------------------------------------------------------------------------------

    @abstractmethod
    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """The location of the object: a text that is put on record, and all that `observe` and `delete` need."""

    @abstractmethod
    async def observe(self, location: Location, known: str | None = None) -> Observation[L]:
        """Reads the live object. Absent only if the service says that there is none: any failure raises.

        `known` is the digest of the body that the last observation had, if any: Unchanged for the same one.
        """

    @abstractmethod
    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | Written[L] | None:
        """Creates the object as `wanted`, whose member `spec` is to be sent: see `wanted_spec`.

        None: the object is observed. RemoteConflict when it is there already: it is observed, and adopted.
        """

    @abstractmethod
    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[L]
    ) -> RemoteOperation | Written[L] | None:
        """Sends one write of the plan: `write.changes` has the fields that differ, `wanted` the whole object."""

    @abstractmethod
    async def delete(self, location: Location, before: Present[L], resource: Resource) -> RemoteOperation | None:
        """Deletes the object; one that is gone already is no error."""

    # --- What most kinds do the same way ------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that does not fit its type. A kind with rules of its own extends it."""
        self.dependencies(resource)
        self.abandons(resource)

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The references and Secrets in the spec, found by the types of its fields."""
        return dependencies_in(self.spec_of(resource), resource)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """What the author wrote in the fields that are compared or sent, with the values of Secrets."""
        names = _sent_names(self.spec_type, self.live_type)
        tree: Json = {"spec": {name: value for name, value in resource.spec.items() if name in names}}
        for field, value in resolved.secrets.items():
            path = Path.parse(field)
            # A reference to a Secret that is no SecretValue stays one: the kind reads `resolved.secrets`.
            if path.steps[1] in names and path.steps[-1] != _SECRET_KEY_REF:
                tree = set_at(tree, path, {"value": value})
        assert isinstance(tree, Mapping)
        return tree

    def view(self, live: L) -> JsonObject:
        """The members of the live object that the spec has, too; null counts as left out."""
        names = {one.encode_name for one in struct_fields(self.spec_type)}
        members: dict[str, Json] = msgspec.to_builtins(live)
        return {
            "spec": {name: without_nulls(one) for name, one in members.items() if name in names and one is not None}
        }

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        """The spec laid over the live object, under the field policy of the author."""
        return effective_state(spec, live, policy)

    def sending(self, intent: Intent) -> PlanOptions:
        """All changes in one update."""
        return DEFAULT_PLAN_OPTIONS

    def abandons(self, resource: Resource) -> bool:
        """Whether `spec.deletionPolicy`, of a spec that has it, is ABANDON; in upper or lower case."""
        policy = resource.spec.get("deletionPolicy")
        if policy is None or not any(one.encode_name == "deletionPolicy" for one in struct_fields(self.spec_type)):
            return False
        if str(policy).lower() not in (_ABANDON, "delete"):
            # A store keeps what was written, valid or not: no word is taken for a wish to delete.
            raise field_invalid(resource, "spec.deletionPolicy", f" is {policy!r}: write ABANDON or DELETE")
        return str(policy).lower() == _ABANDON

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done; a kind whose service has operations says how that is found out."""
        raise Bug(f"{self.name} returned the operation {operation.name!r}, and has no `poll`: define it")

    def for_tenant(self, tenant: Tenant) -> "BaseKind[S, L]":
        """The kind on behalf of a tenant: made anew, with the context of that tenant."""
        return type(self)(self.context.for_tenant(tenant))

    # --- For the verbs ------------------------------------------------------------------------------------------------

    def spec_of(self, resource: Resource) -> S:
        """The spec of a resource, decoded; ManifestInvalid names each wrong field."""
        return decode_spec(resource, self.spec_type)

    def wanted_spec(self, wanted: JsonObject) -> S:
        """The spec to be sent, as a struct: a field that is not sent is UNSET, whatever its type says."""
        spec = wanted.get("spec")
        return struct_of(spec if isinstance(spec, Mapping) else {}, self.spec_type)

    def body(self, wanted: JsonObject, write: PlannedWrite | None = None) -> dict[str, Json]:
        """The spec to be sent, as JSON: each secret value is its text; of a `write`, only where it changes."""
        tree = wanted if write is None else _without_unchanged_secrets(wanted, write, self.tree_type)
        found = plain_secrets(tree.get("spec"), self.spec_type)
        assert isinstance(found, dict)
        return found

    def object_name(self, resource: Resource) -> str:
        """The name of the object in its service: `spec.resourceID`, or else `metadata.name`."""
        return object_name(resource)


# --- What the types have to say ---------------------------------------------------------------------------------------


def _type_arguments(cls: type) -> tuple[type[Struct], type[Struct]] | None:
    """S and L, where the class itself names them; None for a class that has them from its base, or not at all."""
    for base in cls.__dict__.get("__orig_bases__", ()):
        found = [one for one in get_args(base) if isinstance(one, type) and issubclass(one, Struct)]
        if len(found) == 2:
            return found[0], found[1]
    return None


def first_paragraph(cls: type) -> str:
    """The description of the kind: without it, a CustomResourceDefinition would explain nothing."""
    text = (cls.__doc__ or "").strip().partition("\n\n")[0]
    if not text:
        raise TypeError(f"{cls.__name__} has no docstring: say in a sentence what a resource of the kind is")
    return " ".join(text.split())


def _sent_names(spec_type: type[Struct], live_type: type[Struct]) -> frozenset[str]:
    """The fields of the spec that the live object has, and those that are sent and never read back."""
    live = {one.encode_name for one in struct_fields(live_type)}
    fields = shape_of(spec_type).fields
    return frozenset(name for name, one in fields.items() if name in live or one.write_only)


@cache
def _secret_paths(tree_type: type[Struct]) -> tuple[Path, ...]:
    """The fields that are sent and never read back; a list is one unit, and has none."""
    shape = shape_of(tree_type)
    paths = (Path.parse(text) for text in paths_of(shape) if "[" not in text)
    return tuple(path for path in paths if field_at(shape, path).write_only)


def _without_unchanged_secrets(wanted: JsonObject, write: PlannedWrite, tree_type: type[Struct]) -> JsonObject:
    tree: Json = wanted
    for path in _secret_paths(tree_type):
        if not any(path.covers(change.path) or change.path.covers(path) for change in write.changes):
            tree = remove_at(tree, path)
    assert isinstance(tree, Mapping)
    return tree


def _check_fields(spec_type: type[Struct], live_type: type[Struct], uncompared: Sequence[str]) -> None:
    """TypeError for a field that would be neither compared nor sent without a word about it."""
    sent = _sent_names(spec_type, live_type)
    hints = get_type_hints(spec_type, include_extras=True)
    for one in struct_fields(spec_type):
        if one.encode_name in uncompared or is_reference(hints[one.name]):
            continue
        if one.encode_name not in sent:
            raise TypeError(
                f"{spec_type.__name__}.{one.name} is no member of {live_type.__name__}: add it there, mark it "
                "Mark.WRITE_ONLY, or list it in `uncompared` if it does not belong to the object"
            )
        _check_default(spec_type, one)


def _check_default(spec_type: type[Struct], one: FieldInfo) -> None:
    made = one.default_factory() if callable(one.default_factory) else one.default
    if not one.required and made not in (UNSET, None):
        raise TypeError(
            f"{spec_type.__name__}.{one.name} has the default {made!r} of Python, which the engine does not see: write "
            f"Annotated[… | UnsetType, Default({made!r})] = UNSET"
        )
