"""A TrusteeConfig and its children, as tests make them."""

from typing import Any

import msgspec

from setpoint.core.children import Child
from setpoint.engine.resource import Resource
from setpoint.kinds.trustee.kbs_config import KbsConfigSpec
from setpoint.kinds.trustee.trustee_config import Sources, TlsPair, TrusteeConfigSpec, children

HTTPS = TlsPair("a2V5", "Y2VydA==")
TOKEN = TlsPair("dG9rZW4ta2V5", "dG9rZW4tY2VydA==")


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
    sources = Sources(HTTPS if typed.https_secret else None, TOKEN if typed.token_secret else None)
    return {child.key: child for child in children(resource, typed, sources)}


def kbs_config(**spec: Any) -> tuple[Resource, KbsConfigSpec]:
    """A KbsConfig named `kc` with this spec, and what it needs at least."""
    full = {"kbsConfigMapName": "settings", "kbsAuthSecretName": "auth", **spec}
    document: dict[str, Any] = {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": "KbsConfig",
        "metadata": {"name": "kc", "namespace": "trust", "uid": "u2"},
        "spec": full,
    }
    return Resource(document), msgspec.convert(full, KbsConfigSpec)
