"""The annotations of ours and of Config Connector's: what each is for, which values it has, and what is wrong with one.

This is the one list: checks, the admission policy and docs/annotations.md follow from it. Only keys with one of these
two prefixes count, or with a known name after one that is misspelt: any other annotation belongs to another tool.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final, NamedTuple

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.messages import AnnotationTerm, FieldTerm, Message
from setpoint.core.values.paths import nearest
from setpoint.core.values.problems import Problems
from setpoint.errors import ManifestInvalid

CONFIG_CONNECTOR: Final = "cnrm.cloud.google.com/"
OURS: Final = "setpoint.dev/"

# --- Keys -------------------------------------------------------------------------------------------------------------

DELETION_POLICY: Final = f"{CONFIG_CONNECTOR}deletion-policy"
FORCE_DESTROY: Final = f"{CONFIG_CONNECTOR}force-destroy"
PROJECT_ID: Final = f"{CONFIG_CONNECTOR}project-id"
ORGANIZATION_ID: Final = f"{CONFIG_CONNECTOR}organization-id"
RESYNC_INTERVAL: Final = f"{CONFIG_CONNECTOR}reconcile-interval-in-seconds"
UNMANAGED: Final = f"{CONFIG_CONNECTOR}unmanaged"
DEFAULT_TO_GCP: Final = f"{CONFIG_CONNECTOR}default-to-gcp-fields"
IGNORE_UNSPECIFIED: Final = f"{CONFIG_CONNECTOR}ignore-unspecified-fields"
STATE_INTO_SPEC: Final = f"{CONFIG_CONNECTOR}state-into-spec"
LAST_CHANGED_COOKIE: Final = f"{CONFIG_CONNECTOR}last-changed-cookie"
MANAGEMENT: Final = f"{OURS}management"
DEPENDS_ON: Final = f"{OURS}depends-on"
MERGE: Final = f"{OURS}merge"
DELETE_PROTECTION: Final = f"{OURS}delete-protection"
RECONCILE_REQUESTED: Final = f"{OURS}reconcile-requested-at"
MANAGEMENT_BEFORE_EXPORT: Final = f"{OURS}management-before-export"
ABANDONED_BY_MIGRATION: Final = f"{OURS}abandoned-by-migration"
TERRAFORM_ID: Final = f"{OURS}terraform-id"
CLAIM: Final = f"{OURS}claim"
GENERATED_FOR: Final = f"{OURS}generated-for"
GOOGLE_ACCOUNT: Final = f"{OURS}google-service-account"
SHARED_PROJECTS: Final = f"{OURS}google-shared-projects"
PREVENT_PRUNE: Final = f"{OURS}prevent-prune"
SET: Final = f"{OURS}set"
SOURCE: Final = f"{OURS}source"

# --- The list ---------------------------------------------------------------------------------------------------------


class AnnotationScope(StrEnum):
    """The resources that an annotation has an effect on: of our kinds, and of those of plug-ins."""

    EVERY = "every kind"
    OBJECTS = "kinds that stand for one live object"
    # A KubernetesObject leaves the fields alone that its manifest leaves out, and refuses these as owners do.
    FIELDS = "kinds that stand for one live object, except KubernetesObject"
    OWNERS = "kinds that generate other objects, such as TrusteeConfig and KbsConfig"
    # Kinds that name it in `annotations`, among those that change the meaning of a manifest.
    GOOGLE = (
        "SQLInstance, SQLDatabase, SQLUser, StorageBucket, IAMPolicy, IAMPartialPolicy, IAMPolicyMember, "
        "IAMServiceAccountKey and kinds of plug-ins that read it"
    )
    BUCKETS = "StorageBucket and kinds of plug-ins that read it"
    KUBERNETES_OBJECT = "KubernetesObject"
    NAMESPACE = "a Namespace"
    NONE = "no kind here"
    # A controller writes it, and no author does.
    RECORD = "a record"


class AllowedValues(NamedTuple):
    """What the value of an annotation may be, and the advice for any other."""

    pattern: str
    advice: str

    def allows(self, text: str) -> bool:
        """Whether `text` may be the value."""
        return re.fullmatch(self.pattern, text) is not None


_BOOLEAN: Final = AllowedValues("true|false", 'write "true" or "false"')
_SECONDS: Final = AllowedValues("[0-9]+", 'write whole seconds, such as "600", or "0" for never again')


@dataclass(frozen=True, slots=True)
class KnownAnnotation:
    """An annotation: what it does where it has an effect, or what to do instead where it has none."""

    key: str
    scope: AnnotationScope
    meaning: str
    # None where the value is free, or parsed elsewhere.
    values: AllowedValues | None = None

    @property
    def name(self) -> str:
        """The key without its prefix."""
        return self.key.partition("/")[2]

    @property
    def advice(self) -> str:
        """What to do about it where it has no effect."""
        return self.meaning if self.scope is AnnotationScope.NONE else f"it is for {self.scope}; leave it out"


_OF_OTHER_KINDS: Final = {
    "allow-stopping-for-update": "ComputeInstance",
    "auto-create-network": "Project",
    "delete-contents-on-destroy": "BigQueryDataset",
    "disable-dependent-services": "Service",
    "disable-on-destroy": "Service",
    "remove-default-node-pool": "ContainerCluster",
}
_KEEP_LIVE: Final = (
    "no live value is written into the spec here. Config Connector keeps the live value of a field that the spec "
    f'leaves out, with merge and with absent: {IGNORE_UNSPECIFIED}: "true" does so here, and "false" says that such a '
    "field goes back to its default"
)
_PROJECT_ONLY: Final = f"the kinds here belong to a project: write {PROJECT_ID}"

_EVERY: Final = AnnotationScope.EVERY
_OBJECTS: Final = AnnotationScope.OBJECTS
_FIELDS: Final = AnnotationScope.FIELDS
_RECORD: Final = AnnotationScope.RECORD
_NONE: Final = AnnotationScope.NONE

ANNOTATIONS: Final[tuple[KnownAnnotation, ...]] = (
    # --- Of Config Connector, with the same effect here; the last two as it has designed them.
    KnownAnnotation(
        DELETION_POLICY,
        _OBJECTS,
        "Whether the live object stays (`abandon`) or goes (`delete`, as without it) when the resource is deleted.",
        AllowedValues("abandon|delete", "write abandon or delete, in lower case"),
    ),
    KnownAnnotation(
        FORCE_DESTROY,
        AnnotationScope.BUCKETS,
        "Whether a bucket that holds objects is emptied when it is deleted.",
        _BOOLEAN,
    ),
    KnownAnnotation(
        PROJECT_ID, AnnotationScope.GOOGLE, "The Google project of the object. Without it, that of the Namespace."
    ),
    KnownAnnotation(
        RESYNC_INTERVAL, _EVERY, "The mean time between two resyncs; `0`: none once it is up to date.", _SECONDS
    ),
    KnownAnnotation(UNMANAGED, _FIELDS, "Fields, with commas between, that keep their live value, specified or not."),
    KnownAnnotation(
        DEFAULT_TO_GCP, _FIELDS, "Fields, with commas between, that keep their live value where the spec has none."
    ),
    KnownAnnotation(
        IGNORE_UNSPECIFIED,
        _FIELDS,
        "Whether every field that the spec leaves out keeps its live value.",
        _BOOLEAN,
    ),
    # --- Ours.
    KnownAnnotation(
        MANAGEMENT,
        _EVERY,
        "What is done: everything (`full`), reading and reporting drift (`observe`), nothing (`paused`).",
        AllowedValues("full|observe|paused", "write one of full, observe, paused"),
    ),
    KnownAnnotation(DEPENDS_ON, _EVERY, "Resources, with commas between, that have to be ready first: `KIND/NAME`."),
    KnownAnnotation(
        MERGE,
        AnnotationScope.OWNERS,
        "Whether children are merged with the last generated state (`three-way`, as without it) or not (`two-way`).",
        AllowedValues("three-way|two-way", "write three-way or two-way"),
    ),
    KnownAnnotation(
        DELETE_PROTECTION,
        AnnotationScope.KUBERNETES_OBJECT,
        "`false` lifts `spec.deleteProtection` for a deletion that was asked for.",
        AllowedValues("false", 'write "false" to lift the protection; spec.deleteProtection sets it'),
    ),
    KnownAnnotation(
        PREVENT_PRUNE,
        _EVERY,
        "Whether the resource stays when it is no longer among the manifests of its set.",
        _BOOLEAN,
    ),
    KnownAnnotation(RECONCILE_REQUESTED, _EVERY, "Any new text requests a reconcile; `setpoint reconcile` writes it."),
    KnownAnnotation(GOOGLE_ACCOUNT, AnnotationScope.NAMESPACE, "The Google service account that a tenant acts as."),
    KnownAnnotation(
        SHARED_PROJECTS,
        AnnotationScope.NAMESPACE,
        "Further projects whose objects a tenant may refer to: networks, images, topics.",
    ),
    # --- Of Config Connector, without an effect here.
    KnownAnnotation(
        STATE_INTO_SPEC,
        _NONE,
        _KEEP_LIVE,
        AllowedValues("merge|absent", "write merge or absent, or leave it out"),
    ),
    KnownAnnotation(f"{CONFIG_CONNECTOR}folder-id", _NONE, _PROJECT_ONLY),
    KnownAnnotation(ORGANIZATION_ID, _NONE, _PROJECT_ONLY),
    *(
        KnownAnnotation(f"{CONFIG_CONNECTOR}{name}", _NONE, f"Config Connector reads it on a {kind}: leave it out")
        for name, kind in _OF_OTHER_KINDS.items()
    ),
    # --- Records of controllers.
    KnownAnnotation(LAST_CHANGED_COOKIE, _RECORD, "The cookie, with `--cookie-location annotation`; both are read."),
    KnownAnnotation(MANAGEMENT_BEFORE_EXPORT, _RECORD, f"What {MANAGEMENT} was before an export paused the resource."),
    KnownAnnotation(ABANDONED_BY_MIGRATION, _RECORD, f"{DELETION_POLICY} was set by `setpoint migrate --hand-over`."),
    KnownAnnotation(
        CLAIM,
        _RECORD,
        "The object that a controller announced to claim. Once the status has its location, it is history.",
    ),
    KnownAnnotation(
        GENERATED_FOR,
        _RECORD,
        "On a Secret: the resource that its value was generated for, which may take it back when it is made anew.",
    ),
    KnownAnnotation(SET, _RECORD, "The set that the resource belongs to. In a manifest it has no effect."),
    KnownAnnotation(
        SOURCE,
        _RECORD,
        "Where it was declared: the commit, or the digest of the folder, and the file. In a manifest it has no effect.",
    ),
    KnownAnnotation(TERRAFORM_ID, _RECORD, "The Terraform resource that manages an object of a cluster."),
    *(
        KnownAnnotation(f"{CONFIG_CONNECTOR}{name}", _RECORD, "A record of Config Connector; it changes nothing here.")
        for name in (
            "blueprint",
            "management-conflict-prevention-policy",
            "mutable-but-unreadable-fields",
            "observed-secret-versions",
            "reconciler",
            "supports-ssa",
        )
    ),
)
KNOWN: Final[Mapping[str, KnownAnnotation]] = {one.key: one for one in ANNOTATIONS}
_MAX_UNKNOWN: Final = 50
# How similar a prefix is to one of the two, if it is that with a typing error.
_MISSPELT_RATIO: Final = 0.85
_MISSPELT_LETTERS: Final = 2
# What an unknown key may be meant to be, by name: what an author writes.
_WRITTEN: Final = {one.name: one.key for one in ANNOTATIONS if one.scope is not _RECORD}


def annotation_value(annotations: Mapping[str, str], key: str) -> str | None:
    """The value of a known annotation, or None; ManifestInvalid for one that is not allowed."""
    text = annotations.get(key)
    if text is None:
        return None
    values = KNOWN[key].values
    if values is not None and not values.allows(text):
        raise ManifestInvalid(Message(AnnotationTerm(key), f" is {text!r}: {values.advice}"))
    return text


# --- What is wrong with the annotations of a resource -----------------------------------------------------------------


class AnnotationTarget(NamedTuple):
    """The type of a resource, as far as it decides which annotations have an effect on it."""

    kind: str
    # The annotations that the type names among those that change the meaning of a manifest.
    read: Collection[str] = ()
    is_owner: bool = False

    def is_affected_by(self, known: KnownAnnotation) -> bool:
        """Whether the annotation has an effect on resources of this type."""
        match known.scope:
            case AnnotationScope.EVERY:
                return True
            case AnnotationScope.OBJECTS:
                return not self.is_owner
            case AnnotationScope.FIELDS:
                return not self.is_owner and self.kind != AnnotationScope.KUBERNETES_OBJECT
            case AnnotationScope.OWNERS:
                return self.is_owner
            case AnnotationScope.KUBERNETES_OBJECT:
                return self.kind == known.scope
            case _:
                return known.key in self.read


class AnnotationProblem(NamedTuple):
    """What is wrong with an annotation. One that is refused stops the resource; any other is a warning."""

    key: str
    message: Message
    is_refused: bool = False


def check_annotations(annotations: Mapping[str, str], target: AnnotationTarget) -> None:
    """ManifestInvalid for every annotation that is refused: the author would get the opposite of what is meant."""
    refused = [ManifestInvalid(one.message) for one in annotation_problems(annotations, target) if one.is_refused]
    if refused:
        problems = Problems()
        problems.add(refused)
        problems.require_none()


def annotation_warnings(annotations: Mapping[str, str], target: AnnotationTarget) -> tuple[AnnotationProblem, ...]:
    """The annotations that have no effect, and are not refused."""
    return tuple(problem for problem in annotation_problems(annotations, target) if not problem.is_refused)


def annotation_problems(annotations: Mapping[str, str], target: AnnotationTarget) -> Iterator[AnnotationProblem]:
    """What is wrong with the annotations of ours and of Config Connector's, in their order.

    Of many unknown ones it is not found out what each may be meant to be: they are refused.
    """
    unknown = 0
    for key in annotations:
        known = KNOWN.get(key)
        if known is not None:
            yield from _known_problem(known, annotations, target)
        elif key.startswith((CONFIG_CONNECTOR, OURS)):
            if key in target.read:
                continue
            unknown += 1
            if unknown > _MAX_UNKNOWN:
                message = Message(AnnotationTerm(key), f" is unknown, and {_MAX_UNKNOWN} others are: leave them out")
                yield AnnotationProblem(key, message, is_refused=True)
                return
            yield _unknown(key)
        elif (meant := _meant_by(key)) is not None:
            yield _misspelt(key, meant)


def _known_problem(
    known: KnownAnnotation, annotations: Mapping[str, str], target: AnnotationTarget
) -> Iterator[AnnotationProblem]:
    if known.scope is _RECORD:
        return
    if target.is_affected_by(known) or (known.scope is _NONE and not target.is_owner):
        try:
            annotation_value(annotations, known.key)
        except ManifestInvalid as error:
            yield AnnotationProblem(known.key, Message(*error.args), is_refused=True)
            return
    if not target.is_affected_by(known) and not _is_said_otherwise(known, annotations, target):
        message = Message(AnnotationTerm(known.key), f" has no effect on a {target.kind}: ", _advice(known, target))
        yield AnnotationProblem(known.key, message, is_refused=target.is_owner or known.scope is _FIELDS)


def _advice(known: KnownAnnotation, target: AnnotationTarget) -> Message:
    if known.scope is _FIELDS and not target.is_owner:
        why = "fields that its manifest leaves out are not managed anyway; list others to ignore in "
        return Message(why, FieldTerm("spec.ignoreFields"))
    return Message(known.advice)


def _is_said_otherwise(known: KnownAnnotation, annotations: Mapping[str, str], target: AnnotationTarget) -> bool:
    """Whether another annotation says what this one means, where it has an effect."""
    return known.key == STATE_INTO_SPEC and IGNORE_UNSPECIFIED in annotations and not target.is_owner


def _meant_by(key: str) -> str | None:
    """The annotation that is meant by a known name after a misspelt prefix; None for one of another tool."""
    prefix, slash, name = key.partition("/")
    known = _WRITTEN.get(name)
    if known is None or not slash:
        return None
    own = known.partition("/")[0]
    # A subdomain belongs to another tool.
    is_near = abs(len(prefix) - len(own)) <= _MISSPELT_LETTERS and not prefix.endswith(f".{own}")
    return known if is_near and SequenceMatcher(None, prefix.lower(), own).ratio() >= _MISSPELT_RATIO else None


def _misspelt(key: str, meant: str) -> AnnotationProblem:
    message = Message(AnnotationTerm(key), f" is unknown: did you mean {meant}?")
    return AnnotationProblem(key, message, is_refused=True)


def _unknown(key: str) -> AnnotationProblem:
    name = key.partition("/")[2]
    near = nearest(name, tuple(_WRITTEN))
    if near:
        return _misspelt(key, _WRITTEN[near[0]])
    problem = " is unknown, and has no effect: correct its name, or leave it out"
    return AnnotationProblem(key, Message(AnnotationTerm(key), problem))
