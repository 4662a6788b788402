"""The volumes of a Trustee, in their order, and where each is mounted."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from setpoint.core.canonical import digest
from setpoint.engine.resource import Tree
from setpoint.errors import ManifestInvalid
from setpoint.kinds.spec_parts import Maybe
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec
from setpoint.kinds.trustee_places import (
    AUTH_DIR,
    CONFIG_DIR,
    CPU_POLICY,
    GPU_POLICY,
    HTTPS_CERT_DIR,
    HTTPS_KEY_DIR,
    REFERENCE_VALUES,
    REFERENCE_VALUES_DIR,
    RESOURCE_POLICY,
    STORAGE_DIR,
    TOKEN_CERT_DIR,
    TOKEN_KEY_DIR,
)

AS_CONFIG_DIR: Final = "/etc/as-config"
RVPS_CONFIG_DIR: Final = "/etc/rvps-config"
_POLICY_DIR: Final = f"{STORAGE_DIR}/attestation_service_policy"
_KBS_DIR: Final = f"{STORAGE_DIR}/kbs"
_REPOSITORY_DIR: Final = f"{STORAGE_DIR}/repository"
_IBM_SE_DIR: Final = "/run/confidential-containers/ibmse/"
_CERT_CACHE_DIR: Final = "/opt/confidential-containers/attestation-service/kds-store/vcek"
# From where the first container copies the resources into the repository.
_RESOURCES_DIR: Final = "/tmp/kbs-secrets"
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Mounted(NamedTuple):
    """One volume, and its mount. `at_start`: only the first container sees it."""

    volume: Tree
    mount: Tree
    at_start: bool = False


def check_volumes(spec: KbsConfigSpec) -> None:
    """ManifestInvalid where two get in each other's way, once all names are there that have to be."""
    needed = (spec.kbsConfigMapName, spec.kbsAuthSecretName)
    services = () if spec.is_all_in_one else (spec.kbsAsConfigMapName, spec.kbsRvpsConfigMapName)
    if all((*needed, *services)):
        volumes(spec)


def volumes(spec: KbsConfigSpec) -> tuple[Mounted, ...]:
    """All of them; ManifestInvalid where a name is missing, or two get in each other's way."""
    made = tuple(_volumes(spec))
    _check_apart("volume", (str(one.volume["name"]) for one in made), "name each Secret once, and none like a volume")
    _check_apart("mount path", (str(one.mount["mountPath"]) for one in made), "give each entry a mountPath of its own")
    return made


def _volumes(spec: KbsConfigSpec) -> Iterator[Mounted]:
    yield _config_map("kbs-config", _needed("ConfigMap", "kbs-config", spec.kbsConfigMapName), CONFIG_DIR)
    yield _empty("base-storage-dir", STORAGE_DIR)
    yield _empty("attestation-policy-dir", _POLICY_DIR)
    yield from _text("attestation-policy", spec.kbsAttestationPolicyConfigMapName, _POLICY_DIR, CPU_POLICY)
    yield from _text("attestation-policy-gpu", spec.kbsGpuAttestationPolicyConfigMapName, _POLICY_DIR, GPU_POLICY)
    yield _empty("resource-policy-dir", _KBS_DIR)
    yield from _text("resource-policy", spec.kbsResourcePolicyConfigMapName, _KBS_DIR, RESOURCE_POLICY)
    if spec.cert_store_pvc:
        claim = {"persistentVolumeClaim": {"claimName": spec.cert_store_pvc}}
        yield _mounted(volume_name(spec.cert_store_pvc), claim, _IBM_SE_DIR)
    yield _secret("auth-secret", _needed("Secret", "auth-secret", spec.kbsAuthSecretName), AUTH_DIR)
    for entry in spec.cert_cache:
        yield _secret(volume_name(entry.secretName), entry.secretName, entry.mountPath or _CERT_CACHE_DIR)
    yield from _pair("https", spec.https_pair, (HTTPS_KEY_DIR, HTTPS_CERT_DIR))
    yield from _pair("attestation", spec.token_pair, (TOKEN_KEY_DIR, TOKEN_CERT_DIR))
    yield _empty("repository-dir", _REPOSITORY_DIR)
    for name in spec.secret_resources:
        yield _secret(volume_name(name), name, f"{_RESOURCES_DIR}/{name}")._replace(at_start=True)
    yield _empty("rvps-dir", REFERENCE_VALUES_DIR)
    yield from _text("reference-values", spec.kbsRvpsRefValuesConfigMapName, REFERENCE_VALUES_DIR, REFERENCE_VALUES)
    if not spec.is_all_in_one:
        yield _config_map("as-config", _needed("ConfigMap", "as-config", spec.kbsAsConfigMapName), AS_CONFIG_DIR)
        yield _config_map(
            "rvps-config", _needed("ConfigMap", "rvps-config", spec.kbsRvpsConfigMapName), RVPS_CONFIG_DIR
        )


def volume_name(name: str) -> str:
    """The name of the volume for an object that people named: the same, where a volume may be called so."""
    return name if _LABEL.fullmatch(name) else f"volume-{digest(name)[:16]}"


def _mounted(name: str, source: Tree, path: str) -> Mounted:
    return Mounted({"name": name, **source}, {"name": name, "mountPath": path})


def _empty(name: str, path: str) -> Mounted:
    return _mounted(name, {"emptyDir": {"medium": "Memory"}}, path)


def _secret(volume: str, name: str, path: str) -> Mounted:
    return _mounted(volume, {"secret": {"secretName": name}}, path)


def _config_map(volume: str, name: str, path: str) -> Mounted:
    return _mounted(volume, {"configMap": {"name": name}}, path)


def _text(volume: str, name: Maybe[str], folder: str, key: str) -> Iterator[Mounted]:
    """One file into a folder that has others; nothing where no ConfigMap is named."""
    if name:
        whole = _config_map(volume, name, f"{folder}/{key}")
        yield whole._replace(mount={**whole.mount, "subPath": key})


def _pair(prefix: str, names: tuple[str, str] | None, paths: tuple[str, str]) -> Iterator[Mounted]:
    if names:
        yield _secret(f"{prefix}-key", names[0], paths[0])
        yield _secret(f"{prefix}-cert", names[1], paths[1])


def _needed(kind: str, volume: str, name: Maybe[str]) -> str:
    if not name:
        raise ManifestInvalid(f"{kind} name hasn't been provided for volume {volume}: name one in the spec")
    return name


def _check_apart(what: str, found: Iterable[str], advice: str) -> None:
    twice = [one for one, count in Counter(found).items() if count > 1]
    if twice:
        raise ManifestInvalid(f"the {what} {', '.join(twice)} is there more than once: {advice}")
