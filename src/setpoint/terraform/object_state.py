"""The attributes that an object brings along: which one it is, what is declared of it, what it offers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from setpoint.core.kubernetes import text_at
from setpoint.core.values import Json
from setpoint.terraform.cty_types import DYNAMIC
from setpoint.terraform.cty_values import UNKNOWN, Dynamic, Value, Values
from setpoint.terraform.declared import id_on, ignored_in, keeper_of, spec_of, tree_in
from setpoint.terraform.memory import Memory
from setpoint.terraform.plain_values import from_plain
from setpoint.terraform.sites import Place, Sites

if TYPE_CHECKING:
    from setpoint.objects.single import Single


def single_of(sites: Sites, values: Values, id_: str, memory: Memory) -> "Single":
    """The object that these attributes declare, kept under `id_`."""
    from setpoint.objects.single import Single

    spec = spec_of(values, tree_in(values), id_)
    return Single(sites.site(values.get("cluster")), keeper_of(id_), spec, memory.engine)


async def place_of(sites: Sites, values: Values, single: "Single") -> Place:
    """Where that object is."""
    return Place(sites.key(values.get("cluster")), await single.location())


def object_ref(of: Json) -> Values:
    """Which object it is, as a cluster says."""
    return {
        "api_version": text_at(of, "apiVersion"),
        "kind": text_at(of, "kind"),
        "name": text_at(of, "metadata", "name"),
        "namespace": text_at(of, "metadata", "namespace") or None,
    }


def expected_ref(tree: Json) -> Values:
    """The same before a cluster has said whether its kind has namespaces."""
    return {**object_ref(tree), "namespace": UNKNOWN}


def projection(single: "Single", of: Json, values: Values) -> dict[str, Value]:
    """What is declared of an object."""
    return dict(single.fields(of, ignored_in(values)))


def offered(memory: Mapping[str, Json]) -> Value:
    """The value that the engine found, where one is waited for."""
    output = memory.get("output")
    if isinstance(output, Mapping) and output.get("state") == "known":
        return shown_status(output.get("value"))
    return None


def shown_status(cut: Json) -> Value:
    """What `status` shows of an object that is cut to a path: what is below its own status, or all of the way."""
    return dynamic(cut["status"] if isinstance(cut, Mapping) and set(cut) == {"status"} else cut)


def dynamic(tree: Json) -> Value:
    """A tree as a value of the dynamic type."""
    found = from_plain(tree, DYNAMIC)
    assert found is None or isinstance(found, Dynamic)
    return found


def is_kept_under(live: Json, id_: str, memory: Memory) -> bool:
    """Whether an object is the one of that id; one that lost the word for it still is."""
    return id_on(live) in ("", id_, memory.takes)
