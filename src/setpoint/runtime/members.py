"""Who shares a store. A process that keeps a seat is a member; a seat is a lease, and empty when that ran out.

Seats have numbers, not the names of those who sit there: processes come and go, each with a new name, and what is kept
of them would only grow.
"""

import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Final

from setpoint.engine.ports import Lease, Store
from setpoint.errors import UserError
from setpoint.runtime.leases import GIVE_UP_SECONDS, LEASE_SECONDS, PREFIX

SEAT: Final = f"{PREFIX}member-"
_NAME: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._]{0,99}")


def new_identity(name: str) -> str:
    """An identity with that name in it, which no other process has: what one holds, another of the same name does not.

    So a process that is started again waits until what was held before it has run out, as everybody else does.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"--identity {name!r}: write at most 100 letters, digits, -, . and _, a letter or digit first")
    return f"{name}-{secrets.token_hex(4)}"


def members_in(record: Mapping[str, Lease], now: str) -> frozenset[str]:
    """The members, by the leases on record.

    Whoever has not renewed its seat for so long that it may not write any more is none: so its shards are shared out
    among the others by the time that their leases run out, whichever was renewed last.
    """
    by = datetime.fromisoformat(now).timestamp() + LEASE_SECONDS - GIVE_UP_SECONDS
    seats = (lease for name, lease in record.items() if name.startswith(SEAT))
    return frozenset(lease.holder for lease in seats if lease.holder and by < lease.expires)


async def has_members(store: Store, now: str) -> bool:
    """Whether somebody is there who takes steps for what is in `store`."""
    return any(lease.is_held(now) for lease in await store.leases(SEAT))


def seat_for(identity: str, record: Mapping[str, Lease], now: str) -> str:
    """The seat that `identity` may take: its own, if it has one already; otherwise the first that is empty."""
    seats = {name: lease for name, lease in record.items() if name.startswith(SEAT) and lease.is_held(now)}
    own = (name for name, lease in seats.items() if lease.holder == identity)
    return next(own, None) or next(name for number in count() if (name := f"{SEAT}{number}") not in seats)
