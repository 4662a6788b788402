"""What a takeover leaves of an object: fields that no manager declares go, whatever their order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from setpoint.kinds.kubernetes_object.takeover import Takeover

MANAGER = "setpoint/shop/web"
NAMES = st.lists(st.text("abcdefgh", min_size=1, max_size=6), unique=True, min_size=1)


def pod(declared: list[str], live: list[str]) -> Any:
    """A pod whose managedFields say that `declared` of its volumes are ours."""
    fields: dict[str, Any] = {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:emptyDir": {}} for name in declared}
    entry = {
        "manager": MANAGER,
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsV1": {"f:spec": {"f:volumes": fields}} if fields else {},
    }
    spec = {"volumes": [{"name": name, "emptyDir": {}} for name in live]}
    return {"metadata": {"name": "one", "managedFields": [entry]}, "spec": spec}


@given(NAMES, st.data())
def test_an_item_of_a_list_goes_whole(names: list[str], data: st.DataObject) -> None:
    kept = [one for one in names if data.draw(st.booleans())]
    found: Any = Takeover(MANAGER).left_over(pod(names, names), pod(kept, names))

    assert [one["name"] for one in found.get("spec", {}).get("volumes", [])] == kept
