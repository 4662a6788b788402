"""How often a resource that is as declared is looked at again."""

import hashlib
from collections.abc import Mapping
from typing import Final

from setpoint.engine.resource import ResourceRef
from setpoint.errors import ManifestInvalid

INTERVAL: Final = "cnrm.cloud.google.com/reconcile-interval-in-seconds"
MEAN_SECONDS: Final = 600.0


def mean_seconds(annotations: Mapping[str, str]) -> float:
    """The mean time between two looks that the author wants; 0: none once the resource is up to date."""
    text = annotations.get(INTERVAL)
    if text is None:
        return MEAN_SECONDS
    if not (text.isascii() and text.isdecimal()):
        raise ManifestInvalid(f'{INTERVAL} is {text!r}: write whole seconds, such as "600", or "0" for never again')
    return float(text)


def spread(ref: ResourceRef, mean: float) -> float:
    """The time until the next look: between half of the mean and one and a half, always the same for one resource.

    What starts together thus drifts apart, and stays apart.
    """
    name = "/".join((ref.group, ref.kind, ref.namespace, ref.name))
    drawn = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") / 2**64
    return mean * (0.5 + drawn)
