"""A live object and what is wanted of it, apart from what its server and others added: defaults, addresses, times."""

from collections.abc import Mapping, Sequence

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


def laid_over(live: Json, wanted: Json) -> Json:
    """`live` so that it covers `wanted`, with as much of the rest as can stay; the very same when it does already.

    Lists have the entries of `wanted` and no other. An entry keeps what was added to the live one of the same name.
    """
    if covers(live, wanted):
        return live
    match wanted, live:
        case Mapping(), Mapping() if not _is_of_another_sort(live, wanted):
            lacking = {name: member for name, member in wanted.items() if not covers(live.get(name), member)}
            return {**live, **{name: laid_over(live.get(name), member) for name, member in lacking.items()}}
        case list() | tuple(), list() | tuple():
            return [laid_over(_namesake(live, entry), entry) for entry in wanted]
        case _:
            return wanted


def _is_of_another_sort(live: Mapping[str, Json], wanted: Mapping[str, Json]) -> bool:
    """Whether a member is missing in whose place there may be another one, such as another source of a volume.

    Both at once nobody would take.
    """
    return any(
        bare(live.get(name)) is None and bare(member) is not None and not isinstance(member, list | tuple)
        for name, member in wanted.items()
    )


def _namesake(entries: Sequence[Json], wanted: Json) -> Json:
    """The entry that goes by the same name: so Kubernetes tells apart what has one."""
    name = wanted.get("name") if isinstance(wanted, Mapping) else None
    found = (one for one in entries if isinstance(one, Mapping) and name and same(one.get("name"), name))
    return next(found, None)
