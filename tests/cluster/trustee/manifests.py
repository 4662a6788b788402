"""Manifests of Trustee."""

import base64
from typing import Any, Final

API: Final = "confidentialcontainers.org/v1alpha1"


def trustee_config(name: str = "tc", **spec: Any) -> dict[str, Any]:
    """A TrusteeConfig; Permissive unless `spec` has another profile."""
    return {"apiVersion": API, "kind": "TrusteeConfig", "metadata": {"name": name}, "spec": _permissive(spec)}


def _permissive(spec: dict[str, Any]) -> dict[str, Any]:
    return {"profileType": "Permissive", **spec}


def restricted(name: str = "tc", **spec: Any) -> dict[str, Any]:
    """A Restricted TrusteeConfig, with the certificates of `tls_secrets`."""
    https, token = {"tlsSecretName": "https-tls"}, {"tlsSecretName": "token-tls"}
    return trustee_config(
        name, profileType="Restricted", httpsSpec=https, attestationTokenVerificationSpec=token, **spec
    )


def kbs_config(name: str, **spec: Any) -> dict[str, Any]:
    """A KbsConfig."""
    return {"apiVersion": API, "kind": "KbsConfig", "metadata": {"name": name}, "spec": spec}


def tls_secret(name: str, edition: str = "first") -> dict[str, Any]:
    """A TLS Secret; key and certificate are arbitrary bytes."""
    data = {"tls.key": encoded(f"{edition} key of {name}"), "tls.crt": encoded(f"{edition} certificate of {name}")}
    return secret(name, "kubernetes.io/tls", **data)


def tls_secrets(edition: str = "first") -> tuple[dict[str, Any], dict[str, Any]]:
    """Both Secrets that a `restricted` TrusteeConfig names."""
    return tls_secret("https-tls", edition), tls_secret("token-tls", edition)


def secret(name: str, type_: str = "Opaque", **data: str) -> dict[str, Any]:
    """A Secret with data in base64."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": type_, "data": data}


def volume(name: str) -> dict[str, Any]:
    """A PersistentVolume for IBM Secure Execution."""
    spec = {
        "capacity": {"storage": "100Mi"},
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
        "hostPath": {"path": "/opt/certificates"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def encoded(text: str) -> str:
    """The text in base64."""
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    """The text from base64."""
    return base64.b64decode(text).decode()
