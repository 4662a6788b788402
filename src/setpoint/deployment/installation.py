"""An installation: its options, and the names and labels of its objects."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from setpoint import __version__
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.management import CookieLocation
from setpoint.engine.tenancy.tenants import TenancyMode
from setpoint.errors import UserError

DEFAULT_NAMESPACE: Final = "setpoint-system"
DEFAULT_IMAGE: Final = f"setpoint:{__version__}"
_NAMESPACE_PATTERN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SECRET_PATTERN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")
_MAX_NAME: Final = 253
_DIGEST_PATTERN: Final = re.compile(r"@sha256:[0-9a-f]{64}\Z")
# What variables that name images of generated objects end with: see the images of a Trustee.
_IMAGE_VARIABLE: Final = ("_IMAGE_NAME", "_IMAGE_NAME_MICROSERVICES")
_IMAGE_PATTERN: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:/@]*")

_VARIABLE_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Installation:
    """The options of an installation. `watch_namespace` is the only namespace that is reconciled; None for all."""

    namespace: str = DEFAULT_NAMESPACE
    image: str = DEFAULT_IMAGE
    replicas: int = 2
    shards: int = 8
    watch_namespace: str | None = None
    # More environment variables, such as the images of generated objects.
    environment: tuple[tuple[str, str], ...] = ()
    # The kinds that are reconciled, and no others.
    kinds: tuple[str, ...] = ()
    tenancy: TenancyMode = TenancyMode.STRICT
    cookies: CookieLocation = CookieLocation.STATUS
    # Whether the pods serve the dashboard.
    dashboard: bool = False
    # The Secret with the addresses that are told of problems; empty for none.
    notify_secret: str = ""

    @property
    def account(self) -> str:
        """The ServiceAccount of the pods. In the namespace that they reconcile, `setpoint` is that of the tenant."""
        return f"{NAME}-controller" if self.namespace == self.watch_namespace else NAME

    def __post_init__(self) -> None:
        for name in (self.namespace, self.watch_namespace):
            if name is not None:
                require_namespace_name(name)
        if not _IMAGE_PATTERN.fullmatch(self.image):
            raise UserError(f"{self.image!r} names no image: write it as registry.example.com/setpoint:{__version__}")
        _require_secret_name(self.notify_secret)
        for name, _ in self.environment:
            if not _VARIABLE_PATTERN.fullmatch(name):
                raise UserError(f"--env: {name!r} names no variable: write NAME=VALUE, such as KBS_IMAGE_NAME=kbs:1")
        if self.dashboard and self.watch_namespace is not None:
            raise UserError(
                "--dashboard asks the cluster who its users are, and --watch-namespace installs without rights in the "
                "cluster: leave one of the two out"
            )
        if self.replicas < 1 or self.shards < 1:
            raise UserError(f"{self.replicas} replicas and {self.shards} shards: there has to be one of each at least")

    def mutable_images(self) -> tuple[str, ...]:
        """The images that are named by a tag alone: another writer of the registry can move it to other bytes."""
        named = (value for name, value in self.environment if name.endswith(_IMAGE_VARIABLE))
        return tuple(image for image in (self.image, *named) if not _DIGEST_PATTERN.search(image))


def require_namespace_name(name: str) -> None:
    """UserError for a text that cannot name a namespace."""
    if not _NAMESPACE_PATTERN.fullmatch(name):
        raise UserError(
            f"{name!r} cannot be a namespace: write up to 63 lower-case letters, digits and -, "
            "with a letter or digit at both ends"
        )


def _require_secret_name(name: str) -> None:
    if name and (len(name) > _MAX_NAME or not _SECRET_PATTERN.fullmatch(name)):
        raise UserError(f"--notify-secret: {name!r} cannot be a Secret: write lower-case letters, digits, - and dots")


NAME: Final = "setpoint"
# The selector of the Deployment: it is immutable.
SELECTOR_LABELS: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}
LABELS: Final = {**SELECTOR_LABELS, "app.kubernetes.io/version": __version__}
_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


def cluster_metadata(name: str = NAME, labels: Mapping[str, str] = _NO_LABELS) -> dict[str, Json]:
    """The metadata of a cluster-scoped object."""
    return {"name": name, "labels": {**LABELS, **labels}}


def namespaced_metadata(namespace: str, name: str = NAME) -> dict[str, Json]:
    """The metadata of a namespaced object."""
    return {"name": name, "namespace": namespace, "labels": dict(LABELS)}
