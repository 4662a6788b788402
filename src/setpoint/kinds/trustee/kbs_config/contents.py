"""What a Trustee is made of: the ConfigMaps and Secrets it names, and a trace of what is in them."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from setpoint.core.canonical import digest
from setpoint.core.kubernetes import text_at
from setpoint.core.values import Json
from setpoint.engine.resource import Tree
from setpoint.errors import DependencyNotFound
from setpoint.kinds.spec_parts import Maybe
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec

# Where trustee-operator keeps the versions of ConfigMaps; here, those of Secrets too.
VERSIONS: Final = "kbs.confidentialcontainers.org/configmap-versions"
_SHORT: Final = 16


class Part(NamedTuple):
    """An object that a Trustee is made of."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def parts(spec: KbsConfigSpec) -> tuple[Part, ...]:
    """What has to be there before the first pod can start: each once, ConfigMaps first."""
    config_maps = [Part("ConfigMap", name) for name in _said(_config_maps(spec))]
    secrets = [Part("Secret", name) for name in _said(_secrets(spec))]
    return tuple(dict.fromkeys([*config_maps, *secrets]))


def _config_maps(spec: KbsConfigSpec) -> Iterator[Maybe[str]]:
    yield spec.kbsConfigMapName
    yield spec.kbsRvpsRefValuesConfigMapName
    yield spec.kbsAttestationPolicyConfigMapName
    yield spec.kbsGpuAttestationPolicyConfigMapName
    yield spec.kbsResourcePolicyConfigMapName
    if not spec.is_all_in_one:
        yield spec.kbsAsConfigMapName
        yield spec.kbsRvpsConfigMapName


def _secrets(spec: KbsConfigSpec) -> Iterator[Maybe[str]]:
    yield spec.kbsAuthSecretName
    yield from (entry.secretName for entry in spec.cert_cache)
    yield from spec.https_pair or ()
    yield from spec.token_pair or ()
    yield from spec.secret_resources


def _said(names: Iterator[Maybe[str]]) -> Iterator[str]:
    return (name for name in names if name)


def versions(spec: KbsConfigSpec, found: Mapping[Part, Tree]) -> str:
    """The trace of all contents: another one means other pods, for what they mounted does not follow.

    DependencyNotFound names what is not there.
    """
    needed = parts(spec)
    missing = [str(part) for part in needed if part not in found]
    if missing:
        raise DependencyNotFound(f"not found: {', '.join(missing)}: create them in the same namespace")
    return ",".join(f"{part.name}:{_trace(part, found[part])}" for part in needed)


def _trace(part: Part, live: Tree) -> str:
    contents: dict[str, Json] = {name: live.get(name) for name in ("data", "binaryData") if live.get(name)}
    if part.kind == "Secret":
        # Whoever reads the trace must not be able to try out what is in a Secret: that takes its uid, too.
        contents["uid"] = text_at(live, "metadata", "uid")
    return digest(contents)[:_SHORT]
