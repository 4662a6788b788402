"""What somebody wants installed, and where."""

import re
from dataclasses import dataclass
from typing import Final

from setpoint import __version__
from setpoint.errors import UserError

NAMESPACE: Final = "setpoint-system"
IMAGE: Final = f"setpoint:{__version__}"
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:/@]*")

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Installation:
    """The choices of whoever installs. `watch_namespace` is the only one that is looked after; None for all of them."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = 2
    shards: int = 8
    watch_namespace: str | None = None
    # More variables of the environment, such as the images of what owners make.
    environment: tuple[tuple[str, str], ...] = ()
    # The only kinds that are handled; none for all of them.
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.namespace, self.watch_namespace):
            if name is not None and not _NAMESPACE.fullmatch(name):
                raise UserError(
                    f"{name!r} cannot be a namespace: write up to 63 lower-case letters, digits and -, "
                    "with a letter or digit at both ends"
                )
        if not _IMAGE.fullmatch(self.image):
            raise UserError(f"{self.image!r} names no image: write it as registry.example.com/setpoint:{__version__}")
        for name, _ in self.environment:
            if not _VARIABLE.fullmatch(name):
                raise UserError(f"--env: {name!r} names no variable: write NAME=VALUE, such as KBS_IMAGE_NAME=kbs:1")
        if self.replicas < 1 or self.shards < 1:
            raise UserError(f"{self.replicas} replicas and {self.shards} shards: there has to be one of each at least")
