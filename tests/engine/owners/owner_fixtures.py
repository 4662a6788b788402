"""Every owner, and what the contract of owners has to know about it."""

from typing import Any, Final

from setpoint.core.values.paths import Path
from setpoint.kinds.trustee.kbs_config import KbsConfigOwner
from setpoint.kinds.trustee.trustee_config import TrusteeConfigOwner
from setpoint.testing import ChildField, OwnerFixture, OwnerPart
from tests.engine.owners.website import WebsiteOwner
from tests.kinds.trustee.trustee_objects import HTTPS, certificates, kbs_resource, trustee_config

Document = dict[str, Any]


def field_at(key: str, path: Path, value: Any) -> ChildField:
    """A field of a child by its path."""
    return ChildField(key, str(path), value)


def secret(name: str, **data: str) -> Document:
    """A Secret beside the website."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "web"}, "data": dict(data)}


def website(**spec: Any) -> Document:
    """The website `shop`."""
    metadata = {"name": "shop", "namespace": "web"}
    return {"apiVersion": "web.test/v1", "kind": "Website", "metadata": metadata, "spec": {"title": "Shop", **spec}}


def _without_uid(document: Any) -> Document:
    metadata = {name: value for name, value in document["metadata"].items() if name != "uid"}
    return {**document, "metadata": metadata}


def _settings(text: str) -> Document:
    metadata = {"name": "settings", "namespace": "trust"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"kbs-config.toml": text}}


_READY: Final = {
    "observedGeneration": 1,
    "conditions": [{"type": "Ready", "status": "True", "reason": "UpToDate", "message": "fine"}],
}
_ROLLED_OUT: Final = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
WEBSITE: Final = OwnerFixture(
    owner=WebsiteOwner(),
    manifest=website(certificate="cert", captions={"a": "1"}, tags=["a"], pictures=[{"name": "p", "file": "1"}]),
    changed={"title": "Other shop"},
    managed=ChildField("Gallery/shop", "spec.heading", "mine"),
    editable=ChildField("Gallery/shop", "spec.columns", 7),
    entries="spec.captions",
    source=secret("cert", key="b25lLWNlcnRpZmljYXRl"),
    rotated=secret("cert", key="dHdvLWNlcnRpZmljYXRlcw=="),
    followers=("Secret/shop-tls",),
    readiness_child="Gallery/shop",
    ready_status=_READY,
    once="Secret/shop-admin",
    label="site",
)
TRUSTEE: Final = OwnerFixture(
    owner=TrusteeConfigOwner(),
    manifest=_without_uid(trustee_config(profileType="Permissive", httpsSpec={"tlsSecretName": "server"}).document),
    changed={"profileType": "Restricted"},
    managed=ChildField("KbsConfig/tc-kbs-config", "spec.kbsAuthSecretName", "mine"),
    editable=ChildField("KbsConfig/tc-kbs-config", "spec.KbsDeploymentSpec.replicas", 3),
    entries="spec.KbsEnvVars",
    source=HTTPS,
    rotated=certificates("server", "b3RoZXI=", "b3RoZXIy"),
    followers=("Secret/tc-https-key-secret", "Secret/tc-https-cert-secret"),
    readiness_child="KbsConfig/tc-kbs-config",
    ready_status={"isReady": True, **_READY},
    once="Secret/tc-auth-secret",
    label="app.kubernetes.io/component",
)
KBS: Final = OwnerFixture(
    owner=KbsConfigOwner({"OPERATOR_IMAGE_NAME": "operator:1"}),
    manifest=_without_uid(kbs_resource().document),
    changed={"KbsEnvVars": {"RUST_LOG": "debug"}},
    managed=ChildField("Deployment/trustee-deployment", "spec.replicas", 3),
    editable=ChildField("Deployment/trustee-deployment", "spec.paused", True),
    source=_settings("a"),
    rotated=_settings("b"),
    followers=("Deployment/trustee-deployment",),
    objects=(certificates("auth", "a2V5", "a2V5"),),
    readiness_child="Deployment/trustee-deployment",
    ready_status={"observedGeneration": 1, **_ROLLED_OUT},
    label="app",
    reports_edits=False,
    without={
        OwnerPart.ENTRIES: "what it generates is set entry by entry, and other entries are not its own",
        OwnerPart.CREATE_ONLY: "all of its children follow it",
    },
)
FIXTURES: Final = (WEBSITE, TRUSTEE, KBS)
