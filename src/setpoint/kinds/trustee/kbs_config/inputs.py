"""The ConfigMaps and Secrets that a KbsConfig names: a digest of their contents that restarts pods, and public keys."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.errors import DependencyInvalid, DependencyNotFound
from setpoint.kind.typed_spec import Maybe
from setpoint.kinds.trustee.constants import PRIVATE_KEY, PUBLIC_KEY
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec

# trustee-operator's annotation for versions of ConfigMaps; here, it includes those of Secrets.
VERSIONS_ANNOTATION: Final = "kbs.confidentialcontainers.org/configmap-versions"
_SHORT: Final = 16
# In every private key in PEM, whatever its algorithm and its encryption.
_PRIVATE_PEM: Final = b"PRIVATE KEY-----"


class InputObject(NamedTuple):
    """A ConfigMap or Secret that a KbsConfig names."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def input_objects(spec: KbsConfigSpec) -> tuple[InputObject, ...]:
    """The objects that have to exist before the first pod can start: each once, ConfigMaps first."""
    config_maps = [InputObject("ConfigMap", name) for name in _named(_config_maps(spec))]
    secrets = [InputObject("Secret", name) for name in _named(_secrets(spec))]
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


def _named(names: Iterator[Maybe[str]]) -> Iterator[str]:
    return (name for name in names if name)


def input_versions(spec: KbsConfigSpec, found: Mapping[InputObject, JsonObject]) -> str:
    """The digests of all contents, for an annotation of the pods: a change restarts them, for mounts do not follow.

    DependencyNotFound names the missing objects.
    """
    required = input_objects(spec)
    missing = [str(part) for part in required if part not in found]
    if missing:
        raise DependencyNotFound(f"not found: {', '.join(missing)}: create them in the same namespace")
    return ",".join(f"{part.name}:{_content_digest(part, found[part])}" for part in required)


def _content_digest(part: InputObject, live: JsonObject) -> str:
    contents: dict[str, Json] = {name: live.get(name) for name in ("data", "binaryData") if live.get(name)}
    if part.kind == "Secret":
        # The UID as salt: a reader of the digest must not be able to guess the contents of a Secret.
        contents["uid"] = text_at(live, "metadata", "uid")
    return digest(contents)[:_SHORT]


def public_auth_keys(spec: KbsConfigSpec, found: Mapping[InputObject, JsonObject]) -> tuple[str, ...]:
    """The keys of the auth Secret that pods may have, if it also has a private one; empty if pods may have all.

    The key broker verifies its administrator by the public key, and has no use for the private one: a pod that is taken
    over could act as the administrator of its peers. DependencyInvalid for a Secret with private keys alone.
    """
    name = spec.kbsAuthSecretName or ""
    data = found.get(InputObject("Secret", name), {}).get("data")
    keys = dict(data) if isinstance(data, Mapping) else {}
    public = tuple(sorted(key for key, value in keys.items() if not _is_private(key, value)))
    if keys and not public:
        raise DependencyInvalid(
            f"Secret {name} has a private key, and no public one, which is all that the key broker gets: "
            f"add {PUBLIC_KEY}"
        )
    return () if len(public) == len(keys) else public


def _is_private(key: str, value: Json) -> bool:
    if key == PRIVATE_KEY:
        return True
    try:
        return _PRIVATE_PEM in base64.b64decode(value) if isinstance(value, str) else False
    except (binascii.Error, ValueError):
        return False
