"""Which shard a resource belongs to, which replicas are members, and which member should hold a shard.

Every process and every version must compute the same answer, or two of them would reconcile one resource. So none
of the hashing may change without a new LAYOUT. Membership is a numbered lease, free again when it has expired.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from itertools import count
from typing import Final

from setpoint.engine.ports import Lease, Store
from setpoint.engine.resource import ResourceRef
from setpoint.errors import UserError
from setpoint.runtime.sharding.leases import LEASE_PREFIX, LEASE_SECONDS, RENEW_DEADLINE_SECONDS

# Identifies the mapping of keys to shards; processes with different layouts never hold shards at the same time.
LAYOUT: Final = "v1"
# In no name, so that no two resources are joined to the same text.
_SEPARATOR: Final = "\0"
_BYTES: Final = 8


def shard_of(ref: ResourceRef, number: int) -> int:
    """The shard of `ref`, among `number` shards."""
    if number == 1:
        return 0
    return _hash(ref.group, ref.kind, ref.namespace, ref.name) % number


def shard_winner(shard: int, members: Iterable[str]) -> str | None:
    """The member that should hold `shard`; None when there is no member.

    Rendezvous hashing: each member has a hash for each shard, and the highest wins. When a member leaves, only its
    shards move; when one joins, it takes its share from all members, and nothing else moves.
    """
    return max(members, key=lambda member: (_hash(member, str(shard)), member), default=None)


def _hash(*parts: str) -> int:
    text = _SEPARATOR.join(parts).encode()
    return int.from_bytes(blake2b(text, digest_size=_BYTES).digest(), "big")


MEMBER_PREFIX: Final = f"{LEASE_PREFIX}member-"
_IDENTITY: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._]{0,99}")


def new_identity(name: str) -> str:
    """A unique identity that contains `name`: two processes of the same name do not share leases.

    So a restarted process waits until the leases of its predecessor have expired, as any other does.
    """
    if not _IDENTITY.fullmatch(name):
        raise UserError(f"--identity {name!r}: write at most 100 letters, digits, -, . and _, a letter or digit first")
    return f"{name}-{secrets.token_hex(4)}"


def members_in(leases: Mapping[str, Lease], now: str) -> frozenset[str]:
    """The members, by the leases on record.

    A process whose renewal is so late that it may not write any more is no member: so its shards are assigned to the
    remaining members by the time their leases expire.
    """
    by = datetime.fromisoformat(now).timestamp() + LEASE_SECONDS - RENEW_DEADLINE_SECONDS
    seats = (lease for name, lease in leases.items() if name.startswith(MEMBER_PREFIX))
    return frozenset(lease.holder for lease in seats if lease.holder and by < lease.expires)


async def has_members(store: Store, now: str) -> bool:
    """Whether any process reconciles the resources in `store`."""
    return any(lease.is_held(now) for lease in await store.leases(MEMBER_PREFIX))


def member_lease_for(identity: str, leases: Mapping[str, Lease], now: str) -> str:
    """The name of the membership lease for `identity`: its own, if it has one; otherwise the first that is free."""
    seats = {name: lease for name, lease in leases.items() if name.startswith(MEMBER_PREFIX) and lease.is_held(now)}
    own = (name for name, lease in seats.items() if lease.holder == identity)
    return next(own, None) or next(name for number in count() if (name := f"{MEMBER_PREFIX}{number}") not in seats)
