"""Leases of stores that keep records: holder, expiry, and a fence that only grows."""

import dataclasses
from datetime import datetime
from typing import Final

from setpoint.engine.ports import Clock, Lease

_NO_HOLDER: Final = ""


def unix_seconds(clock: Clock) -> float:
    """The clock's time in whole seconds since 1970: a lease may expire up to a second early, never late."""
    return datetime.fromisoformat(clock.now()).timestamp()


def acquired(held: Lease | None, asked: Lease, now: float) -> Lease | None:
    """The lease that `asked.holder` holds from now on; None while another holds it. `asked.fence` is ignored."""
    if held is None:
        return dataclasses.replace(asked, fence=1)
    if held.holder == asked.holder:
        return dataclasses.replace(asked, fence=held.fence)
    return dataclasses.replace(asked, fence=held.fence + 1) if held.expires <= now else None


def released(held: Lease | None, lease: Lease) -> Lease | None:
    """`held`, released; unchanged when `lease` is not the one that is held. The fence is kept."""
    if held is None or (held.holder, held.fence) != (lease.holder, lease.fence):
        return held
    return dataclasses.replace(held, holder=_NO_HOLDER, expires=0.0)
