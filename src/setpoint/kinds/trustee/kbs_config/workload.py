"""The Deployment and the Service of a KbsConfig, with their containers and volumes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from setpoint.core.merge.children import Child, ChildUpdatePolicy, FieldsView
from setpoint.core.owner_references import owner_reference
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, UserError
from setpoint.kind.typed_spec import Maybe
from setpoint.kinds.trustee.constants import (
    AUTH_DIR,
    CONFIG_DIR,
    CPU_POLICY,
    GPU_POLICY,
    HTTPS_CERT_DIR,
    HTTPS_KEY_DIR,
    KBS_TOML,
    PORT,
    REFERENCE_VALUES,
    REFERENCE_VALUES_DIR,
    RESOURCE_POLICY,
    STORAGE_DIR,
    TOKEN_CERT_DIR,
    TOKEN_KEY_DIR,
)
from setpoint.kinds.trustee.kbs_config.inputs import VERSIONS_ANNOTATION
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec

AS_CONFIG_DIR: Final = "/etc/as-config"
RVPS_CONFIG_DIR: Final = "/etc/rvps-config"
_POLICY_DIR: Final = f"{STORAGE_DIR}/attestation_service_policy"
_KBS_DIR: Final = f"{STORAGE_DIR}/kbs"
_REPOSITORY_DIR: Final = f"{STORAGE_DIR}/repository"
_IBM_SE_DIR: Final = "/run/confidential-containers/ibmse/"
_CERT_CACHE_DIR: Final = "/opt/confidential-containers/attestation-service/kds-store/vcek"
# Mounted in the init container, which copies the Secrets into the repository.
_RESOURCES_DIR: Final = "/tmp/kbs-secrets"
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class MountedVolume(NamedTuple):
    """One volume, and its mount. `init_only`: mounted in the init container only."""

    volume: JsonObject
    mount: JsonObject
    init_only: bool = False


def check_volumes(spec: KbsConfigSpec) -> None:
    """ManifestInvalid for volumes that collide, once all required names are set."""
    needed = (spec.kbsConfigMapName, spec.kbsAuthSecretName)
    services = () if spec.is_all_in_one else (spec.kbsAsConfigMapName, spec.kbsRvpsConfigMapName)
    if all((*needed, *services)):
        volumes(spec)


def volumes(spec: KbsConfigSpec, auth_keys: Sequence[str] = ()) -> tuple[MountedVolume, ...]:
    """All volumes in order; of the auth Secret only `auth_keys`, unless there are none.

    ManifestInvalid where a required name is missing, or two volumes collide.
    """
    made = tuple(_volumes(spec, auth_keys))
    _check_unique("volume", (str(one.volume["name"]) for one in made), "name each Secret once, and none like a volume")
    _check_unique("mount path", (str(one.mount["mountPath"]) for one in made), "give each entry a mountPath of its own")
    return made


def _volumes(spec: KbsConfigSpec, auth_keys: Sequence[str]) -> Iterator[MountedVolume]:
    yield _config_map_volume("kbs-config", _required("ConfigMap", "kbs-config", spec.kbsConfigMapName), CONFIG_DIR)
    yield _empty_dir("base-storage-dir", STORAGE_DIR)
    yield _empty_dir("attestation-policy-dir", _POLICY_DIR)
    yield from _file_mount("attestation-policy", spec.kbsAttestationPolicyConfigMapName, _POLICY_DIR, CPU_POLICY)
    yield from _file_mount("attestation-policy-gpu", spec.kbsGpuAttestationPolicyConfigMapName, _POLICY_DIR, GPU_POLICY)
    yield _empty_dir("resource-policy-dir", _KBS_DIR)
    yield from _file_mount("resource-policy", spec.kbsResourcePolicyConfigMapName, _KBS_DIR, RESOURCE_POLICY)
    if spec.cert_store_pvc:
        claim = {"persistentVolumeClaim": {"claimName": spec.cert_store_pvc}}
        yield _mounted(volume_name(spec.cert_store_pvc), claim, _IBM_SE_DIR)
    auth_secret = _required("Secret", "auth-secret", spec.kbsAuthSecretName)
    yield _secret_volume("auth-secret", auth_secret, AUTH_DIR, auth_keys)
    for entry in spec.cert_cache:
        yield _secret_volume(volume_name(entry.secretName), entry.secretName, entry.mountPath or _CERT_CACHE_DIR)
    yield from _pair_volumes("https", spec.https_pair, (HTTPS_KEY_DIR, HTTPS_CERT_DIR))
    yield from _pair_volumes("attestation", spec.token_pair, (TOKEN_KEY_DIR, TOKEN_CERT_DIR))
    yield _empty_dir("repository-dir", _REPOSITORY_DIR)
    for name in spec.secret_resources:
        yield _secret_volume(volume_name(name), name, f"{_RESOURCES_DIR}/{name}")._replace(init_only=True)
    yield _empty_dir("rvps-dir", REFERENCE_VALUES_DIR)
    yield from _file_mount(
        "reference-values", spec.kbsRvpsRefValuesConfigMapName, REFERENCE_VALUES_DIR, REFERENCE_VALUES
    )
    if not spec.is_all_in_one:
        yield _config_map_volume(
            "as-config", _required("ConfigMap", "as-config", spec.kbsAsConfigMapName), AS_CONFIG_DIR
        )
        yield _config_map_volume(
            "rvps-config", _required("ConfigMap", "rvps-config", spec.kbsRvpsConfigMapName), RVPS_CONFIG_DIR
        )


def volume_name(name: str) -> str:
    """The volume name for an object: the object's name if it is a valid label, else a digest."""
    return name if _LABEL.fullmatch(name) else f"volume-{digest(name)[:16]}"


def _mounted(name: str, source: JsonObject, path: str) -> MountedVolume:
    return MountedVolume({"name": name, **source}, {"name": name, "mountPath": path})


def _empty_dir(name: str, path: str) -> MountedVolume:
    return _mounted(name, {"emptyDir": {"medium": "Memory"}}, path)


def _secret_volume(volume: str, name: str, path: str, keys: Sequence[str] = ()) -> MountedVolume:
    """A Secret, or only these keys of it."""
    items: JsonObject = {"items": [{"key": key, "path": key} for key in keys]} if keys else {}
    return _mounted(volume, {"secret": {"secretName": name, **items}}, path)


def _config_map_volume(volume: str, name: str, path: str) -> MountedVolume:
    return _mounted(volume, {"configMap": {"name": name}}, path)


def _file_mount(volume: str, name: Maybe[str], folder: str, key: str) -> Iterator[MountedVolume]:
    """One key of a ConfigMap as a file in a shared folder; empty where no ConfigMap is named."""
    if name:
        whole = _config_map_volume(volume, name, f"{folder}/{key}")
        yield whole._replace(mount={**whole.mount, "subPath": key})


def _pair_volumes(prefix: str, names: tuple[str, str] | None, paths: tuple[str, str]) -> Iterator[MountedVolume]:
    if names:
        yield _secret_volume(f"{prefix}-key", names[0], paths[0])
        yield _secret_volume(f"{prefix}-cert", names[1], paths[1])


def _required(kind: str, volume: str, name: Maybe[str]) -> str:
    if not name:
        raise ManifestInvalid(f"{kind} name hasn't been provided for volume {volume}: name one in the spec")
    return name


def _check_unique(what: str, found: Iterable[str], advice: str) -> None:
    twice = [one for one, count in Counter(found).items() if count > 1]
    if twice:
        raise ManifestInvalid(f"the {what} {', '.join(twice)} is there more than once: {advice}")


_REGISTRY: Final = "ghcr.io/confidential-containers"
_CONVERTER: Final = "OPERATOR_IMAGE_NAME"


class TrusteeImages(NamedTuple):
    """The images of the containers: `converter` is trustee-operator's own, which copies Secrets into the repository."""

    converter: str
    kbs: str
    attestation: str
    reference_values: str


def images(environment: Mapping[str, str], spec: KbsConfigSpec) -> TrusteeImages:
    """The images from trustee-operator's environment variables, or their defaults."""
    converter = environment.get(_CONVERTER, "")
    if not converter:
        raise UserError(f"{_CONVERTER} environment variable must be set: to the image of trustee-operator")
    kbs = "KBS_IMAGE_NAME" if spec.is_all_in_one else "KBS_IMAGE_NAME_MICROSERVICES"
    return TrusteeImages(
        converter,
        environment.get(kbs) or f"{_REGISTRY}/key-broker-service:latest",
        environment.get("AS_IMAGE_NAME") or f"{_REGISTRY}/attestation-service:latest",
        environment.get("RVPS_IMAGE_NAME") or f"{_REGISTRY}/reference-value-provider-service:latest",
    )


def init_containers(chosen: TrusteeImages, mounted: Sequence[MountedVolume]) -> list[Json]:
    """The init container, which copies the Secrets for clients into the repository."""
    return [
        {
            "name": "secret-converter",
            "image": chosen.converter,
            "command": ["/secret-converter"],
            "securityContext": {**_security_context(), "runAsNonRoot": True},
            "volumeMounts": [
                *(one.mount for one in mounted if not one.init_only),
                *(one.mount for one in mounted if one.init_only),
            ],
        }
    ]


def containers(spec: KbsConfigSpec, chosen: TrusteeImages, mounted: Sequence[MountedVolume]) -> list[Json]:
    """The key broker, and in a microservices deployment the services beside it."""
    mounts: list[Json] = [one.mount for one in mounted if not one.init_only]
    command = ["/usr/local/bin/kbs", "--config-file", f"{CONFIG_DIR}/{KBS_TOML}"]
    broker = {
        **_container(spec, "kbs", chosen.kbs, command, mounts),
        "ports": [_port("kbs", PORT)],
        "readinessProbe": _probe(spec, delay=5, period=10),
        "livenessProbe": _probe(spec, delay=15, period=30),
    }
    return [broker] if spec.is_all_in_one else [broker, *_microservices(spec, chosen, mounts)]


def _microservices(spec: KbsConfigSpec, chosen: TrusteeImages, mounts: list[Json]) -> list[Json]:
    serve = ["/usr/local/bin/grpc-as", "--socket", "0.0.0.0:50004"]
    attestation = _container(
        spec, "as", chosen.attestation, [*serve, "--config-file", f"{AS_CONFIG_DIR}/as-config.json"], mounts
    )
    reference_values = _container(
        spec,
        "rvps",
        chosen.reference_values,
        ["/usr/local/bin/rvps", "-c", f"{RVPS_CONFIG_DIR}/rvps-config.json"],
        mounts,
    )
    return [{**attestation, "ports": [_port("as", 50004)]}, {**reference_values, "ports": [_port("rvps", 50003)]}]


def _container(spec: KbsConfigSpec, name: str, image: str, command: Sequence[str], mounts: list[Json]) -> JsonObject:
    return {
        "name": name,
        "image": image,
        "command": list(command),
        "env": _env(spec),
        "securityContext": _security_context(),
        "volumeMounts": mounts,
    }


def _env(spec: KbsConfigSpec) -> list[Json]:
    return [{"name": name, "value": value} for name, value in spec.env.items()]


def _security_context() -> dict[str, Json]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _port(name: str, number: int) -> JsonObject:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _probe(spec: KbsConfigSpec, *, delay: int, period: int) -> JsonObject:
    return {
        "httpGet": {"path": "/healthz", "port": PORT, "scheme": "HTTPS" if spec.https_pair else "HTTP"},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    }


# Set before the Deployment is created, and removed after it is deleted.
FINALIZER: Final = "kbsconfig.confidentialcontainers.org/finalizer"
DEPLOYMENT: Final = "trustee-deployment"
SERVICE: Final = "kbs-service"
_APP: Final = {"app": "kbs"}
_SPEC: Final = FieldsView((Path(("spec",)),))
_SELECTOR: Final = Path(("spec", "selector"))


class WorkloadInputs(NamedTuple):
    """What pods get of ConfigMaps and Secrets: the digest of `input_versions`, and the keys of `public_auth_keys`."""

    digest: str
    auth_keys: tuple[str, ...] = ()


def workload(
    resource: Resource, spec: KbsConfigSpec, chosen: TrusteeImages, inputs: WorkloadInputs
) -> tuple[Child, Child]:
    """Both as children: fields that a server or another writer adds are kept, and are no drift.

    Errors as for `deployment`.
    """
    pods = deployment(resource, spec, chosen, inputs)
    return (
        Child(pods, ChildUpdatePolicy.APPLY_SUBSET, _SPEC, {}, immutable=(_SELECTOR,)),
        Child(service(resource, spec), ChildUpdatePolicy.APPLY_SUBSET, _SPEC, {}),
    )


def deployment(resource: Resource, spec: KbsConfigSpec, chosen: TrusteeImages, inputs: WorkloadInputs) -> JsonObject:
    """The Deployment. ManifestInvalid for a spec that no pod can have."""
    mounted = volumes(spec, inputs.auth_keys)
    pod: JsonObject = {
        "initContainers": init_containers(chosen, mounted),
        "containers": containers(spec, chosen, mounted),
        "volumes": [one.volume for one in mounted],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(resource, DEPLOYMENT),
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": dict(_APP)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": dict(_APP), "annotations": {VERSIONS_ANNOTATION: inputs.digest}},
                "spec": pod,
            },
        },
    }


def service(resource: Resource, spec: KbsConfigSpec) -> JsonObject:
    """The Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(resource, SERVICE),
        "spec": {
            "type": spec.kbsServiceType or "ClusterIP",
            "selector": dict(_APP),
            "ports": [{"name": "kbs-port", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def _metadata(resource: Resource, name: str) -> dict[str, Json]:
    return {
        "name": name,
        "namespace": resource.ref.namespace,
        "labels": dict(_APP),
        "ownerReferences": [owner_reference(resource.document)],
    }
