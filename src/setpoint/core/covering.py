"""Whether a live object is as wanted, apart from what its server added: defaults, addresses, times."""

from collections.abc import Mapping

from setpoint.core.canonical import same
from setpoint.core.threeway import bare
from setpoint.core.values import Json


def covers(live: Json, wanted: Json) -> bool:
    """Whether `live` has every member of `wanted`, however deep; lists entry by entry, with none more and none less."""
    match wanted:
        case Mapping():
            return all(
                covers(live.get(name) if isinstance(live, Mapping) else None, member) for name, member in wanted.items()
            )
        case list() | tuple():
            found = live if isinstance(live, list | tuple) else ()
            return len(found) == len(wanted) and all(map(covers, found, wanted))
        case _:
            return same(live, wanted) or (bare(live) is None and bare(wanted) is None)
