"""What the objects are called, and the labels they carry."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from setpoint import __version__
from setpoint.core.values import Json

NAME: Final = "setpoint"
# By these a Deployment knows its pods: they may never change.
SELECTED: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}
LABELS: Final = {**SELECTED, "app.kubernetes.io/version": __version__}
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def of_cluster(name: str = NAME, labels: Mapping[str, str] = _NONE) -> dict[str, Json]:
    """The metadata of an object that belongs to no namespace."""
    return {"name": name, "labels": {**LABELS, **labels}}


def in_namespace(namespace: str, name: str = NAME) -> dict[str, Json]:
    """The metadata of an object in a namespace."""
    return {"name": name, "namespace": namespace, "labels": dict(LABELS)}
