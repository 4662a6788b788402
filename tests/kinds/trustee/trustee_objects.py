"""A TrusteeConfig and its children, as tests make them."""

from typing import Any

import msgspec

from setpoint.core.merge.children import Child
from setpoint.engine.resource import Resource
from setpoint.kinds.trustee.kbs_config import KbsConfigSpec
from setpoint.kinds.trustee.trustee_config import TrusteeConfigSpec, TrusteeSources, generated_children


def certificates(name: str, key: str, certificate: str) -> dict[str, Any]:
    """A Secret with a pair, both in base64."""
    data = {"tls.key": key, "tls.crt": certificate}
    metadata = {"name": name, "namespace": "trust"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}


HTTPS = certificates("server", "a2V5", "Y2VydA==")
TOKEN = certificates("token", "dG9rZW4ta2V5", "dG9rZW4tY2VydA==")
VOLUME: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "certificates"}}


def trustee_config(**spec: Any) -> Resource:
    """A TrusteeConfig named `tc` with this spec."""
    return Resource(
        {
            "apiVersion": "confidentialcontainers.org/v1alpha1",
            "kind": "TrusteeConfig",
            "metadata": {"name": "tc", "namespace": "trust", "uid": "u1"},
            "spec": spec,
        }
    )


def made(**spec: Any) -> dict[str, Child]:
    """The children of such a TrusteeConfig, by kind and name, in their order."""
    resource = trustee_config(**spec)
    typed = msgspec.convert(resource.spec, TrusteeConfigSpec)
    return {child.key: child for child in generated_children(resource, typed, TrusteeSources(HTTPS, TOKEN, VOLUME))}


def kbs_config(**spec: Any) -> tuple[Resource, KbsConfigSpec]:
    """A KbsConfig named `kc` with this spec and the required names; and its spec, typed."""
    resource = kbs_resource(**spec)
    return resource, msgspec.convert(resource.spec, KbsConfigSpec)


def kbs_resource(**spec: Any) -> Resource:
    """The same, whatever its spec says."""
    return Resource(
        {
            "apiVersion": "confidentialcontainers.org/v1alpha1",
            "kind": "KbsConfig",
            "metadata": {"name": "kc", "namespace": "trust", "uid": "u2"},
            "spec": {"kbsConfigMapName": "settings", "kbsAuthSecretName": "auth", **spec},
        }
    )
