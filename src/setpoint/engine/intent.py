"""The intent: the spec and everything else that changes its meaning, and the digest that stands for all of it."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from setpoint.core.decide import Cookie
from setpoint.core.filled_fields import filled_marks, is_filled, path_mark, with_removed
from setpoint.core.overlay import Declared
from setpoint.core.plan import retainable_paths
from setpoint.core.redaction import REDACTED, redact
from setpoint.core.schema.annotations import check_annotations
from setpoint.core.schema.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, PRUNE, UNMANAGED, FieldPolicy
from setpoint.core.schema.shape import Field, ObjectShape, field_at, paths_of, shape_of
from setpoint.core.schema.validation import violations
from setpoint.core.secret_fields import HIDDEN_VALUE, redacted_at
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import replace
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.messages import FieldTerm, Message, SubjectTerm, field_named_by
from setpoint.core.values.paths import Path, get_at
from setpoint.core.values.problems import Problems
from setpoint.engine.capabilities import SupportsGeneratedSecret
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import (
    AnyKind,
    Intent,
    Location,
    Reconciliation,
    ResolvedReferences,
    ResourceType,
    SecretKeyReference,
)
from setpoint.engine.owner import annotation_target
from setpoint.engine.references import dependencies_of, resolve_dependencies
from setpoint.engine.resource import SECRET, Resource
from setpoint.engine.state import AppliedIntent, StoredState
from setpoint.errors import ManifestInvalid, UserError

_POLICIES: Final = (UNMANAGED, DEFAULT_TO_GCP, IGNORE_UNSPECIFIED)


def check_manifest(resource: Resource, kind: ResourceType) -> None:
    """ManifestInvalid or UnknownField for the mistakes of the author, all at once; no service is asked."""
    problems = Problems()
    problems.collect(require_shown_values, resource)
    problems.collect(check_annotations, resource.annotations, annotation_target(kind))
    policy = problems.collect(FieldPolicy.parse, resource.annotations, shape_of(kind.tree_type))
    problems.collect(kind.check, resource)
    problems.add(_refused_values(resource, kind, policy or PRUNE, tuple(problems.found)))
    problems.require_none()


def _refused_values(
    resource: Resource, kind: ResourceType, policy: FieldPolicy, found: Iterable[UserError]
) -> Iterator[ManifestInvalid]:
    """An error for each value that the type does not allow, unless the field is unmanaged.

    Where a mistake was found in the field already, or below it, the rest follows from that.
    """
    wrong = tuple(path for path in map(_wrong_field, found) if path is not None)
    for text, problem in violations(resource.document, shape_of(kind.tree_type)):
        path = Path.parse(text)
        is_unmanaged = any(unmanaged.covers(path) for unmanaged in policy.unmanaged)
        if not is_unmanaged and not any(path.covers(one) or one.covers(path) for one in wrong):
            yield ManifestInvalid(Message(SubjectTerm(str(resource.ref)), FieldTerm(text), problem))


def _wrong_field(problem: UserError) -> Path | None:
    term = field_named_by(problem)
    try:
        return Path.parse(term.path) if isinstance(term, FieldTerm) else None
    except ManifestInvalid:
        # An unknown field may have any name.
        return None


def require_shown_values(resource: Resource) -> None:
    """ManifestInvalid for what a view printed in the place of a secret value: it must not become the value."""
    if not resource.mentions(REDACTED):
        return
    at = redacted_at({name: one for name, one in resource.document.items() if name not in ("metadata", "status")})
    if at is not None:
        raise ManifestInvalid(Message(SubjectTerm(str(resource.ref)), FieldTerm(str(at)), HIDDEN_VALUE))


async def resolve_intent(resource: Resource, engine: EngineContext) -> Intent:
    """The intent of `resource`; its dependencies have to exist and be ready."""
    require_shown_values(resource)
    engine = await _with_generated_secret(resource, engine)
    resolved = await resolve_dependencies(dependencies_of(resource, engine.resource_types), resource.ref, engine)
    return intent_of(resource, engine.kind_of(resource), resolved)


async def resolve_ignoring_readiness(resource: Resource, engine: EngineContext) -> Intent:
    """The same without a step: dependencies have to exist, and count as ready."""
    engine = await _with_generated_secret(resource, await engine.for_namespace(resource.ref.namespace))
    dependencies = (
        dependency if isinstance(dependency, SecretKeyReference) else replace(dependency, must_be_ready=False)
        for dependency in dependencies_of(resource, engine.resource_types)
    )
    resolved = await resolve_dependencies(tuple(dependencies), resource.ref, engine)
    return intent_of(resource, engine.kind_of(resource), resolved)


async def _with_generated_secret(resource: Resource, engine: EngineContext) -> EngineContext:
    """The engine as if the Secret of the resource were written; few kinds have one."""
    kind: object = engine.kinds.get(resource.ref.group_kind)
    if not isinstance(kind, SupportsGeneratedSecret):
        return engine
    from setpoint.engine.owners.generated_secret import with_pending_secret

    return await with_pending_secret(resource, engine)


def intent_of(resource: Resource, kind: AnyKind, resolved: ResolvedReferences) -> Intent:
    """The intent, given the resolved dependencies."""
    location = kind.locate(resource, resolved)
    shape = shape_of(kind.tree_type)

    def declare() -> Declared:
        return Declared(kind.declare(resource, resolved), shape, FieldPolicy.parse(resource.annotations, shape))

    def full(declared: Declared) -> Declared:
        return _with_removed(declared, resource, location) if is_filled(shape) else declared

    if _depends_on_document_alone(resolved, shape):
        return Intent(resource, location, lambda: full(declare()), resolved, _digest(None, resource, kind, resolved))
    declared = declare()
    resolved = replace(resolved, versions={**_versions(declared, resource), **resolved.versions})
    return Intent(resource, location, lambda: full(declared), resolved, _digest(declared, resource, kind, resolved))


def _with_removed(declared: Declared, resource: Resource, location: Location) -> Declared:
    """With null for what the author has taken out since the object at this location was last as declared."""
    state = StoredState.of(resource)
    return with_removed(declared, state.applied.named if state.applied and state.location == location else ())


def _depends_on_document_alone(resolved: ResolvedReferences, shape: ObjectShape) -> bool:
    """Whether `declare` depends on the document alone, which the digest covers."""
    return not (resolved.resources or resolved.values or _uncompared(shape))


def _versions(declared: Declared, resource: Resource) -> dict[str, str]:
    """A digest of each value in the spec that cannot be compared with the live object: it tells whether it is new."""
    found = ((path, get_at(declared.tree, path)) for path in _uncompared(declared.shape))
    values = {str(path): value for path, value in found if not (value is None or isinstance(value, Missing))}
    return {path: digest([resource.uid, path, value]) for path, value in values.items()}


@cache
def _uncompared(shape: ObjectShape) -> tuple[Path, ...]:
    """The fields that are sent only when their value is new; a list is one unit, and has none."""
    paths = (Path.parse(text) for text in paths_of(shape) if "[" not in text)
    return tuple(path for path in paths if (place := field_at(shape, path)).write_only or place.asked)


def _digest(
    declared: Declared | None,
    resource: Resource,
    kind: AnyKind,
    resolved: ResolvedReferences,
    revision: int | None = None,
) -> str:
    covered: dict[str, Json] = {
        "written": resource.author_digest,
        "labels": resource.labels,
        # A secret counts by its version, never by its value.
        "secrets": resolved.versions,
        "annotations": _meaningful_annotations(resource, kind),
        "revision": kind.revision if revision is None else revision,
    }
    if declared is not None:
        # References as the kind resolves them.
        covered["declared"] = redact(declared.tree, Field(declared.shape))
    return digest(covered)


def _meaningful_annotations(resource: Resource, kind: AnyKind) -> dict[str, Json]:
    annotations = resource.annotations
    return {key: annotations[key] for key in (*_POLICIES, *kind.annotations) if key in annotations}


# A revision that was not counted, but made of data, has no earlier ones below it.
_MOST_COUNTED: Final = 100


# --- What is kept of an intent that was applied -----------------------------------------------------------------------


def applied_intent(intent: Intent, kind: AnyKind) -> AppliedIntent:
    """What is kept of the intent; of a kind without cookies, the fields alone."""
    kept = (path_mark(path) for path in retainable_paths(intent.declared))
    named = tuple(sorted({*kept, *filled_marks(intent.declared)}))
    if kind.reconciliation is Reconciliation.STATELESS:
        return AppliedIntent(named=named)
    return AppliedIntent(kind.revision, _authored(intent, kind), named)


def is_only_revised(intent: Intent, kind: AnyKind, cookie: Cookie, applied: AppliedIntent | None) -> bool:
    """Whether the intent differs from that of `cookie` by the kind's revision, and not by what the author wrote."""
    if applied is not None and applied.authored:
        return applied.revision != kind.revision and applied.authored == _authored(intent, kind)
    # Stored by a version that did not keep it: an earlier revision that reads the manifest as this one can be told.
    resolved, shape = intent.resolved, shape_of(kind.tree_type)
    declared = None if _depends_on_document_alone(resolved, shape) else intent.declared
    revisions = range(min(kind.revision, _MOST_COUNTED))
    earlier = (_digest(declared, intent.resource, kind, resolved, revision) for revision in revisions)
    return cookie.intent in earlier


def _authored(intent: Intent, kind: AnyKind) -> str:
    """A short digest of what the author wrote, Secrets included; not of what the kind makes of it."""
    resource = intent.resource
    covered: dict[str, Json] = {
        "written": resource.author_digest,
        "labels": resource.labels,
        "annotations": _meaningful_annotations(resource, kind),
        "secrets": {str(ref): seen for ref, seen in intent.resolved.seen.items() if ref.group_kind == SECRET},
    }
    return digest(covered)[:16]
