"""The owner TrusteeConfig: generates ConfigMaps, Secrets and a KbsConfig, and derives its readiness from that."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.core.conditions import ConditionReason, ConditionType, find_condition
from setpoint.core.merge.children import Child
from setpoint.core.unstructured import (
    condition_lag,
    conditions_of,
    display_name,
    generation_lag,
    observed_generation,
    text_at,
)
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path, get_at, nearest
from setpoint.core.values.problems import Problems
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.kind import CrdDetails, Dependency
from setpoint.engine.owner import GeneratedChildren, ObjectKind, OwnerStatus
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotReady
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.trustee.constants import (
    API_VERSION,
    CONFIG_MAP,
    GROUP,
    KBS_TOML,
    LONGEST_LABEL,
    RESOURCE_POLICY,
    SECRET,
    VERSION,
    object_ref,
)
from setpoint.kinds.trustee.trustee_config.children import (
    KEY_PAIR,
    TrusteeSources,
    generate_key_pair,
    generated_children,
    missing_field_warnings,
)
from setpoint.kinds.trustee.trustee_config.generated_texts import access_of, contradictions
from setpoint.kinds.trustee.trustee_config.kbs_config_child import ChildNames
from setpoint.kinds.trustee.trustee_config.kbs_toml import kbs_toml, tls_settings
from setpoint.kinds.trustee.trustee_config.kbs_toml_merge import settings_problem
from setpoint.kinds.trustee.trustee_config.policies import ResourceAccess
from setpoint.kinds.trustee.trustee_config.spec import (
    KbsConfigRef,
    ProfileType,
    TrusteeConfigSpec,
    TrusteeConfigStatus,
    TrusteeConfigTree,
    check_spec,
    trustee_status,
)


def readiness_of(
    kbs_config: ResourceRef, live: JsonObject | None, wrong: Sequence[str] = (), insecure: Sequence[str] = ()
) -> OwnerStatus:
    """The status and condition from the live KbsConfig, and what is wrong with the edited ConfigMaps.

    `isReady` repeats the KbsConfig's, unless an edit contradicts the profile (`insecure`). The Ready condition also
    requires settings that are as declared: an edited file without them is not, whatever still runs.
    """
    unready = _unready(kbs_config, live)
    ref = KbsConfigRef(API_VERSION, kbs_config.kind, kbs_config.name, kbs_config.namespace)
    status = trustee_status(ref, is_ready=unready is None, contradicts=bool(insecure))
    problems = [one for one in (unready, *wrong, *insecure) if one]
    ready = (
        ReadyCondition("False", ConditionReason.NOT_READY, "; ".join(problems))
        if problems
        else ReadyCondition("True", ConditionReason.UP_TO_DATE, str(status.statusDescription))
    )
    return OwnerStatus(ready, msgspec.to_builtins(status))


def _unready(kbs_config: ResourceRef, live: JsonObject | None) -> str | None:
    """Why the KbsConfig is not ready; None when it is."""
    if live is None:
        return f"{kbs_config} is not there yet"
    if text_at(live, "metadata", "deletionTimestamp"):
        return f"{display_name(live)} is being deleted"
    behind = generation_lag(live, observed_generation(live))
    if behind:
        return f"{display_name(live)} is not ready yet: {behind}"
    return None if is_kbs_config_ready(live) else f"{display_name(live)} is not ready{_reason_of(live)}"


def is_kbs_config_ready(kbs_config: JsonObject) -> bool:
    """Whether a live KbsConfig reports that it is ready."""
    return get_at(kbs_config, Path(("status", "isReady"))) is True


def _reason_of(live: JsonObject) -> str:
    """The message of the KbsConfig's Ready condition, unless it is of an older generation."""
    ready = find_condition(conditions_of(live), ConditionType.READY)
    if ready is None or ready.status == "True" or not ready.message or condition_lag(live, ready):
        return " yet"
    return f": {ready.message}"


def _wrong_settings(settings: JsonObject | None, generated: str) -> Iterator[str]:
    problem = None if settings is None else settings_problem(text_at(settings, "data", KBS_TOML), generated)
    if problem:
        yield f"{KBS_TOML} in {display_name(settings)}: {problem}; {_OR_DELETE}"


def _insecure_edits(spec: TrusteeConfigSpec, settings: JsonObject | None, policy: JsonObject | None) -> Iterator[str]:
    """What an edit, or an operator before this one, has left open that the profile closes."""
    if spec.profile is not ProfileType.RESTRICTED:
        return
    for problem in () if settings is None else contradictions(text_at(settings, "data", KBS_TOML)):
        yield f"{KBS_TOML} in {display_name(settings)}: {problem}; {_OR_DELETE}"
    if policy is not None and access_of(text_at(policy, "data", RESOURCE_POLICY)) is ResourceAccess.ALL:
        yield (
            f"{RESOURCE_POLICY} in {display_name(policy)} gives every resource to {ResourceAccess.ALL}, which "
            f"contradicts the profile {spec.profile}: write what clients have to prove; {_OR_DELETE}"
        )


_OR_DELETE: Final = "or delete the ConfigMap, and it is made anew"
_CLAIM: Final = ObjectKind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
_VOLUME: Final = ObjectKind("", "v1", "PersistentVolume", "persistentvolumes", is_namespaced=False)
_KBS_CONFIG: Final = ObjectKind(GROUP, VERSION, "KbsConfig", "kbsconfigs")
_DEFINITION: Final = CrdDetails("A Trustee, from a few settings.", TrusteeConfigStatus)


@dataclass(slots=True)
class TrusteeConfigOwner:
    """The owner TrusteeConfig."""

    group: str = GROUP
    version: str = VERSION
    name: str = "TrusteeConfig"
    # 2: texts that trustee-operator generated are not edits, and what contradicts the profile holds Ready back.
    revision: int = 2
    annotations: Sequence[str] = ()
    tree_type: type[Struct] = TrusteeConfigTree
    definition: CrdDetails = _DEFINITION
    makes: Sequence[ObjectKind] = (CONFIG_MAP, SECRET, _CLAIM, _KBS_CONFIG)
    reads: Sequence[ObjectKind] = (SECRET, _VOLUME)
    # All children are garbage collected.
    finalizer: str = ""
    minimum_outputs: JsonObject = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for an invalid spec, or a name that is too long for a label."""
        problems = Problems()
        problems.collect(_spec, resource)
        problems.collect(_check_profile, resource)
        length = len(resource.ref.name)
        if length > LONGEST_LABEL:
            problem = f" has {length} characters: write {LONGEST_LABEL} at most, for its children have it as a label"
            problems.add([field_invalid(resource, "metadata.name", problem)])
        problems.require_none()

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """None: each child has its own sources."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The Secrets with certificates, and IBM's volume with its claim."""
        return tuple(dict.fromkeys(ref for ref in _source_refs(resource) if ref is not None))

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """All children; or those before the first one whose sources are missing, and then no KbsConfig."""
        spec = _spec(resource)
        there = (found.get(ref) if ref else None for ref in _source_refs(resource))
        sources = TrusteeSources(*(None if one is None else one.document for one in there))
        made: list[Child] = []
        try:
            for child in generated_children(resource, spec, sources):
                made.append(child)
        except DependencyNotReady as error:
            return GeneratedChildren(tuple(made), error, missing_field_warnings(spec))
        return GeneratedChildren(tuple(made), warnings=missing_field_warnings(spec))

    def completed(self, child: Child) -> JsonObject:
        """The object; the administrator's Secret with a new key pair."""
        return {**child.object, "data": generate_key_pair()} if child.filled_on_create == KEY_PAIR else child.object

    def status_of(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """Ready when the KbsConfig is ready for its current generation, and no edit contradicts what is declared."""
        spec, names = _spec(resource), ChildNames(resource.ref.name)
        live, settings, policy = (
            None if (one := children.get(key)) is None else one.document
            for key in (
                f"{_KBS_CONFIG.kind}/{names.kbs_config}",
                f"{CONFIG_MAP.kind}/{names.kbs_config}",
                f"{CONFIG_MAP.kind}/{names.resource_policy}",
            )
        )
        generated = kbs_toml(spec.profile, tls_settings(spec.tlsConfig or None))
        wrong, insecure = [*_wrong_settings(settings, generated)], [*_insecure_edits(spec, settings, policy)]
        return readiness_of(object_ref(_KBS_CONFIG, names.kbs_config, resource), live, wrong, insecure)

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """None: a TrusteeConfig has no finalizer."""
        return ()


def _check_profile(resource: Resource) -> None:
    """ManifestInvalid for a misspelt profile, with the one that is meant; its type refuses any other text."""
    written = resource.spec.get("profileType")
    near = nearest(written, list(ProfileType)) if isinstance(written, str) and written not in list(ProfileType) else ()
    if near:
        raise field_invalid(resource, "spec.profileType", f" is {written!r}; did you mean {near[0]}?")


def _spec(resource: Resource) -> TrusteeConfigSpec:
    spec = decode_spec(resource, TrusteeConfigSpec)
    check_spec(spec)
    return spec


def _source_refs(resource: Resource) -> tuple[ResourceRef | None, ...]:
    """The reference for each member of `TrusteeSources`; None for one that the spec does not need."""
    spec = _spec(resource)
    return (
        object_ref(SECRET, spec.https_secret, resource) if spec.https_secret else None,
        object_ref(SECRET, spec.token_secret, resource) if spec.token_secret else None,
        object_ref(_VOLUME, spec.ibmSE.pvName, resource) if spec.ibmSE else None,
        object_ref(_CLAIM, ChildNames(resource.ref.name).ibm_se_claim, resource) if spec.ibmSE else None,
    )
