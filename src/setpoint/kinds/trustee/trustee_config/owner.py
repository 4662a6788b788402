"""The owner TrusteeConfig: from a few wishes to ConfigMaps, Secrets, and the KbsConfig that names them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from setpoint.core.children import Child
from setpoint.engine.kind import Definition, Need
from setpoint.engine.owner import Generated, ObjectKind, Standing
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.errors import DependencyNotReady, ManifestInvalid
from setpoint.kinds.trustee.trustee_config.children import KEY_PAIR, children
from setpoint.kinds.trustee.trustee_config.kbs_toml import kbs_toml
from setpoint.kinds.trustee.trustee_config.key_pair import fresh_key_pair
from setpoint.kinds.trustee.trustee_config.names import Names
from setpoint.kinds.trustee.trustee_config.sources import Sources, gaps
from setpoint.kinds.trustee.trustee_config.spec import TrusteeConfigSpec, TrusteeConfigTree, check_spec
from setpoint.kinds.trustee.trustee_config.standing import standing_of
from setpoint.kinds.trustee.trustee_config.status import TrusteeConfigStatus
from setpoint.kinds.trustee.trustee_config.tls import tls_settings
from setpoint.kinds.trustee_places import CONFIG_MAP, GROUP, SECRET, VERSION, place_of
from setpoint.kinds.typed_spec import read_spec

_CLAIM: Final = ObjectKind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
_VOLUME: Final = ObjectKind("", "v1", "PersistentVolume", "persistentvolumes", is_namespaced=False)
_KBS_CONFIG: Final = ObjectKind(GROUP, VERSION, "KbsConfig", "kbsconfigs")
_LONGEST_NAME: Final = 63
_DEFINITION: Final = Definition("One Trustee, from a few wishes.", TrusteeConfigStatus)


@dataclass(slots=True)
class TrusteeConfigOwner:
    """The owner."""

    group: str = GROUP
    version: str = VERSION
    name: str = "TrusteeConfig"
    revision: int = 1
    annotations: Sequence[str] = ()
    tree_type: type[Struct] = TrusteeConfigTree
    definition: Definition = _DEFINITION
    makes: Sequence[ObjectKind] = (CONFIG_MAP, SECRET, _CLAIM, _KBS_CONFIG)
    reads: Sequence[ObjectKind] = (SECRET, _VOLUME)
    # Everything that it makes goes by itself.
    finalizer: str = ""
    least: Tree = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no Trustee can have, or a name that no label can."""
        _spec(resource)
        length = len(resource.ref.name)
        if length > _LONGEST_NAME:
            raise ManifestInvalid(
                f"{resource.ref}: metadata.name has {length} characters: write {_LONGEST_NAME} at most, for its "
                "children have it as a label"
            )

    def needs(self, resource: Resource) -> Sequence[Need]:
        """None: what it is made of is a matter of each child."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The Secrets with certificates, and IBM's volume with the claim that may be on it."""
        return tuple(dict.fromkeys(ref for ref in _places(resource) if ref is not None))

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> Generated:
        """All children; or those before the first for which something is missing: never a KbsConfig then."""
        spec = _spec(resource)
        there = (found.get(ref) if ref else None for ref in _places(resource))
        sources = Sources(*(None if one is None else one.document for one in there))
        made: list[Child] = []
        try:
            for child in children(resource, spec, sources):
                made.append(child)
        except DependencyNotReady as error:
            return Generated(tuple(made), error, gaps(spec))
        return Generated(tuple(made), warnings=gaps(spec))

    def completed(self, child: Child) -> Tree:
        """The object; the administrator's Secret with a pair of keys that nobody had before."""
        return {**child.object, "data": fresh_key_pair()} if child.lacks == KEY_PAIR else child.object

    def standing(self, resource: Resource, children: Mapping[str, Resource]) -> Standing:
        """Ready when the KbsConfig is, for what it is now, and its settings are in order."""
        spec, name = _spec(resource), Names(resource.ref.name).kbs_config
        generated = kbs_toml(spec.profile, tls_settings(spec.tlsConfig or None))
        live, settings = (
            None if (one := children.get(f"{kind.kind}/{name}")) is None else one.document
            for kind in (_KBS_CONFIG, CONFIG_MAP)
        )
        return standing_of(place_of(_KBS_CONFIG, name, resource), live, settings, generated)

    def goes_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """None: nothing holds a TrusteeConfig."""
        return ()


def _spec(resource: Resource) -> TrusteeConfigSpec:
    spec = read_spec(resource, TrusteeConfigSpec)
    check_spec(spec)
    return spec


def _places(resource: Resource) -> tuple[ResourceRef | None, ...]:
    """Where each member of `Sources` is; None for what nobody asks for."""
    spec = _spec(resource)
    return (
        place_of(SECRET, spec.https_secret, resource) if spec.https_secret else None,
        place_of(SECRET, spec.token_secret, resource) if spec.token_secret else None,
        place_of(_VOLUME, spec.ibmSE.pvName, resource) if spec.ibmSE else None,
        place_of(_CLAIM, Names(resource.ref.name).ibm_se_claim, resource) if spec.ibmSE else None,
    )
