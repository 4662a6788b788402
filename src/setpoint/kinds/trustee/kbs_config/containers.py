"""The containers of a Trustee."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from setpoint.core.values import Json
from setpoint.engine.resource import Tree
from setpoint.errors import UserError
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec
from setpoint.kinds.trustee.kbs_config.volumes import AS_CONFIG_DIR, RVPS_CONFIG_DIR, Mounted
from setpoint.kinds.trustee_places import CONFIG_DIR, KBS_TOML, PORT

_REGISTRY: Final = "ghcr.io/confidential-containers"
_CONVERTER: Final = "OPERATOR_IMAGE_NAME"


class Images(NamedTuple):
    """Which images run: `converter` is trustee-operator's own, whose one command copies Secrets into the repository."""

    converter: str
    kbs: str
    attestation: str
    reference_values: str


def images(environment: Mapping[str, str], spec: KbsConfigSpec) -> Images:
    """The images that the environment names, as trustee-operator is told; or the usual ones."""
    converter = environment.get(_CONVERTER, "")
    if not converter:
        raise UserError(f"{_CONVERTER} environment variable must be set: to the image of trustee-operator")
    kbs = "KBS_IMAGE_NAME" if spec.is_all_in_one else "KBS_IMAGE_NAME_MICROSERVICES"
    return Images(
        converter,
        environment.get(kbs) or f"{_REGISTRY}/key-broker-service:latest",
        environment.get("AS_IMAGE_NAME") or f"{_REGISTRY}/attestation-service:latest",
        environment.get("RVPS_IMAGE_NAME") or f"{_REGISTRY}/reference-value-provider-service:latest",
    )


def first_containers(chosen: Images, mounted: Sequence[Mounted]) -> list[Json]:
    """The one that lays out the Secrets that clients can have, then ends."""
    return [
        {
            "name": "secret-converter",
            "image": chosen.converter,
            "command": ["/secret-converter"],
            "securityContext": {**_confined(), "runAsNonRoot": True},
            "volumeMounts": [
                *(one.mount for one in mounted if not one.at_start),
                *(one.mount for one in mounted if one.at_start),
            ],
        }
    ]


def containers(spec: KbsConfigSpec, chosen: Images, mounted: Sequence[Mounted]) -> list[Json]:
    """Those that stay: the broker, and beside it what it does not do itself."""
    mounts: list[Json] = [one.mount for one in mounted if not one.at_start]
    command = ["/usr/local/bin/kbs", "--config-file", f"{CONFIG_DIR}/{KBS_TOML}"]
    broker = {
        **_container(spec, "kbs", chosen.kbs, command, mounts),
        "ports": [_port("kbs", PORT)],
        "readinessProbe": _probe(spec, delay=5, period=10),
        "livenessProbe": _probe(spec, delay=15, period=30),
    }
    return [broker] if spec.is_all_in_one else [broker, *_helpers(spec, chosen, mounts)]


def _helpers(spec: KbsConfigSpec, chosen: Images, mounts: list[Json]) -> list[Json]:
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


def _container(spec: KbsConfigSpec, name: str, image: str, command: Sequence[str], mounts: list[Json]) -> Tree:
    return {
        "name": name,
        "image": image,
        "command": list(command),
        "env": _env(spec),
        "securityContext": _confined(),
        "volumeMounts": mounts,
    }


def _env(spec: KbsConfigSpec) -> list[Json]:
    return [{"name": name, "value": value} for name, value in spec.env.items()]


def _confined() -> dict[str, Json]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _port(name: str, number: int) -> Tree:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _probe(spec: KbsConfigSpec, *, delay: int, period: int) -> Tree:
    return {
        "httpGet": {"path": "/healthz", "port": PORT, "scheme": "HTTPS" if spec.https_pair else "HTTP"},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    }
