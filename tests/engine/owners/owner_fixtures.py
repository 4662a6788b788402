"""Every owner, and what the contract of owners has to know about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from setpoint.core.values.paths import Path
from setpoint.engine.owner import Owner
from setpoint.kinds.trustee.kbs_config import KbsConfigOwner
from setpoint.kinds.trustee.trustee_config import TrusteeConfigOwner
from tests.engine.owners.website import WebsiteOwner
from tests.kinds.trustee.trustee_objects import HTTPS, certificates, kbs_resource, trustee_config

Document = dict[str, Any]
_CAPTIONS: Final = Path(("spec", "captions"))


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a child, and a value that is not generated there."""

    key: str
    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class OwnerFixture:
    """One owner. `manifest` makes all of its children, out of `source` and the `others`."""

    owner: Owner
    manifest: Document
    # The spec that says something else.
    then: Mapping[str, Any]
    # Without it there are not all of the children.
    source: Document
    rotated: Document
    # The children that are written when the source is rotated.
    followers: tuple[str, ...]
    managed: Place
    # An editable field: there, another writer has precedence.
    theirs: Place
    # The child that the readiness depends on, and its status when it is ready.
    readiness_child: str
    well: Mapping[str, Any]
    others: tuple[Document, ...] = ()
    # Made once; empty where there is none.
    once: str = ""
    # Whether edits are reported: where the rest is unmanaged, they are not.
    reports_edits: bool = True
    label: str = "site"
    # An editable field with entries in `theirs`, one of which is generated.
    entries: Path = _CAPTIONS

    def __str__(self) -> str:
        return self.owner.name


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
    WebsiteOwner(),
    website(certificate="cert", captions={"a": "1"}, tags=["a"], pictures=[{"name": "p", "file": "1"}]),
    {"title": "Other shop"},
    secret("cert", key="b25l"),
    secret("cert", key="dHdv"),
    ("Secret/shop-tls",),
    Place("Gallery/shop", Path(("spec", "heading")), "mine"),
    Place("Gallery/shop", Path(("spec", "columns")), 7),
    readiness_child="Gallery/shop",
    well=_READY,
    once="Secret/shop-admin",
)
TRUSTEE: Final = OwnerFixture(
    TrusteeConfigOwner(),
    _without_uid(trustee_config(profileType="Permissive", httpsSpec={"tlsSecretName": "server"}).document),
    {"profileType": "Restricted"},
    HTTPS,
    certificates("server", "b3RoZXI=", "b3RoZXIy"),
    ("Secret/tc-https-key-secret", "Secret/tc-https-cert-secret"),
    Place("KbsConfig/tc-kbs-config", Path(("spec", "kbsAuthSecretName")), "mine"),
    Place("KbsConfig/tc-kbs-config", Path(("spec", "KbsDeploymentSpec", "replicas")), 3),
    readiness_child="KbsConfig/tc-kbs-config",
    well={"isReady": True, **_READY},
    once="Secret/tc-auth-secret",
    label="app.kubernetes.io/component",
    entries=Path(("spec", "KbsEnvVars")),
)
KBS: Final = OwnerFixture(
    KbsConfigOwner({"OPERATOR_IMAGE_NAME": "operator:1"}),
    _without_uid(kbs_resource().document),
    {"KbsEnvVars": {"RUST_LOG": "debug"}},
    _settings("a"),
    _settings("b"),
    ("Deployment/trustee-deployment",),
    Place("Deployment/trustee-deployment", Path(("spec", "replicas")), 3),
    Place("Deployment/trustee-deployment", Path(("spec", "paused")), True),
    readiness_child="Deployment/trustee-deployment",
    well={"observedGeneration": 1, **_ROLLED_OUT},
    others=(certificates("auth", "a2V5", "a2V5"),),
    reports_edits=False,
    label="app",
)
FIXTURES: Final = (WEBSITE, TRUSTEE, KBS)
