"""The fields of one resource: spec, live object and effective desired state side by side, with the rule of each.

The live object is read for it, as `setpoint plan` does; nothing is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from setpoint.core.diff import FieldChange, created_fields, diff
from setpoint.core.overlay import rule_at
from setpoint.core.plan import Plan
from setpoint.core.redaction import REDACTED, redact, redact_untyped
from setpoint.core.schema.policy import Rule
from setpoint.core.secret_fields import without_texts
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.capabilities import SupportsDryRun
from setpoint.engine.context import EngineContext
from setpoint.engine.intent import resolve_ignoring_readiness
from setpoint.engine.kind import Absent, AnyKind, Intent, LiveObservation, observe_decoded
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.plan import live_digest
from setpoint.engine.step.reconcile import preview
from setpoint.errors import SetpointError
from setpoint.library.declared import SessionValue

_MANIFEST: Final = Path(("spec", "manifest"))
# So many fields are shown of an object without a type.
_MAX_UNTYPED: Final = 2_000


@dataclass(frozen=True, slots=True)
class FieldState:
    """One field: what the spec says, what the live object has, what it should be, and the rule that decides that.

    MISSING where there is no value. Secret values are redacted.
    """

    path: str
    spec: Json | Missing
    live: Json | Missing
    desired: Json | Missing
    rule: Rule
    differs: bool

    @property
    def is_secret(self) -> bool:
        """Whether its value is not shown."""
        return REDACTED in (self.spec, self.live, self.desired)


@dataclass(frozen=True, slots=True, eq=False)
class FieldListing(SessionValue):
    """All fields of a resource, by path. `live` is the digest of the live object; `trouble` why it was not read."""

    ref: ResourceRef
    at: str
    fields: tuple[FieldState, ...]
    intent: str | None = None
    live: str | None = None
    # Why nothing could be compared; empty when it could.
    trouble: str = ""
    # The whole live object, without secret values; null when there is none, or it was not read.
    live_object: Json = None

    def __iter__(self) -> Iterator[FieldState]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def to_data(self) -> Json:
        """A list of fields, with the values that there are."""
        return [_field_data(one) for one in self.fields]

    def __repr__(self) -> str:
        return f"<{len(self)} fields of {self.ref}>"


def _field_data(one: FieldState) -> Json:
    sides = (("spec", one.spec), ("live", one.live), ("desired", one.desired))
    shown = {name: side for name, side in sides if not isinstance(side, Missing)}
    return {"path": one.path, "rule": one.rule.value, "differs": one.differs, **shown}


async def read_fields(resource: Resource, engine: EngineContext) -> FieldListing:
    """The fields of a resource; of one whose references cannot be resolved, or whose object cannot be read, the spec's.

    `engine` can only read.
    """
    ref, now = resource.ref, engine.clock.now()
    engine = await engine.for_namespace(ref.namespace)
    try:
        if ref.group_kind in engine.owners:
            return FieldListing(ref, now, tuple(await _owner_fields(resource, engine)))
        intent = await resolve_ignoring_readiness(resource, engine)
        kind = engine.kind_of(resource)
        observed = await observe_decoded(intent.location, kind)
        fields = (
            await _untyped_fields(intent, observed, engine)
            if isinstance(kind, SupportsDryRun)
            else list(_typed_fields(intent, observed, kind))
        )
        live_object = _live_object(intent, observed, kind, engine)
    except SetpointError as error:
        # A service may repeat what it was sent.
        trouble = without_texts(str(error), engine.secret_fields.texts(resource.document))
        return FieldListing(ref, now, tuple(_spec_fields(resource, engine)), trouble=str(trouble))
    live = live_digest(observed)
    return FieldListing(
        ref,
        now,
        tuple(fields),
        intent.digest,
        None if isinstance(live, Missing) else live,
        live_object=live_object,
    )


def _live_object(intent: Intent, observed: LiveObservation, kind: AnyKind, engine: EngineContext) -> Json:
    """The live object in the terms of the spec; a Kubernetes object as it is."""
    if isinstance(observed, Absent):
        return None
    if isinstance(kind, SupportsDryRun):
        return engine.secret_fields.redacted(observed.whole) if isinstance(observed.whole, Mapping) else None
    effective = intent.effective.over(observed, kind)
    assert not isinstance(effective.live, Missing)
    return redact(effective.live, effective.declared.shape.as_field)


def _typed_fields(intent: Intent, observed: LiveObservation, kind: AnyKind) -> Iterator[FieldState]:
    """Every field of spec, live object and desired state; write-only fields are redacted by their type."""
    effective = intent.effective.over(observed, kind)
    declared, whole = effective.declared, effective.declared.shape.as_field
    live: JsonObject = {} if isinstance(effective.live, Missing) else effective.live
    specs, lives, wanted = (_by_path(created_fields(one, whole)) for one in (declared.tree, live, effective.tree))
    differing = [one.path for one in diff(live, effective.tree, whole)]
    for path in sorted({**specs, **lives, **wanted}, key=str):
        yield FieldState(
            str(path),
            specs.get(path, MISSING),
            lives.get(path, MISSING),
            wanted.get(path, MISSING),
            rule_at(declared, path),
            any(path.covers(one) or one.covers(path) for one in differing),
        )


def _by_path(changes: Sequence[FieldChange]) -> Mapping[Path, Json | Missing]:
    return {one.path: one.after for one in changes}


async def _untyped_fields(intent: Intent, observed: LiveObservation, engine: EngineContext) -> list[FieldState]:
    """The fields of a Kubernetes object: those of its manifest, and those that the next step would change."""
    secrets, ref = engine.secret_fields, intent.resource.ref
    manifest = get_at(intent.declared.tree, _MANIFEST)
    shown = secrets.redacted(manifest) if isinstance(manifest, Mapping) else {}
    whole = None if isinstance(observed, Absent) else observed.whole
    live = secrets.redacted(whole) if isinstance(whole, Mapping) else {}
    plan = await preview(ref, engine, trust_cookie=False)
    changes = {one.path: one for one in (*plan.changes, *plan.withheld)}
    unmanaged = intent.declared.policy.unmanaged
    found: dict[Path, FieldState] = {}
    for path, value in _leaves(shown, Path()):
        rule = Rule.UNMANAGED if any(one.covers(path) for one in unmanaged) else Rule.SPEC
        there = get_at(live, path)
        desired = there if rule is Rule.UNMANAGED else value
        found[path] = FieldState(str(path), value, there, desired, rule, path in changes)
        if len(found) >= _MAX_UNTYPED:
            break
    for path, change in changes.items():
        if path not in found:
            found[path] = FieldState(str(path), MISSING, change.before, change.after, change.rule, differs=True)
    return [found[path] for path in sorted(found, key=str)]


async def _owner_fields(resource: Resource, engine: EngineContext) -> list[FieldState]:
    """The spec of an owner, and the fields of its children that are kept, withheld, or about to be written."""
    plan: Plan = await preview(resource.ref, engine, trust_cookie=False)
    fields = list(_spec_fields(resource, engine))
    for changes, differs in ((plan.changes, True), (plan.withheld, True), (plan.kept, False)):
        fields += [
            FieldState(str(one.path), MISSING, one.before, one.after, one.rule, differs=differs) for one in changes
        ]
    return fields


def _spec_fields(resource: Resource, engine: EngineContext) -> Iterator[FieldState]:
    document = engine.secret_fields.redacted(resource.document)
    for path, value in _leaves({"spec": document.get("spec", {})}, Path()):
        yield FieldState(str(path), value, MISSING, MISSING, Rule.SPEC, differs=False)


def _leaves(value: Json, at: Path) -> Iterator[tuple[Path, Json]]:
    """The values at the ends of a tree; a list is one value. Members with a secret-sounding name are redacted."""
    if not isinstance(value, Mapping) or not value:
        yield at, value
        return
    redacted = redact_untyped(value)
    assert isinstance(redacted, Mapping)
    for name, below in value.items():
        is_hidden = not same([below], [redacted[name]]) and redacted[name] == REDACTED
        yield from _leaves(REDACTED if is_hidden else below, at / name)
