"""Lists, a page at a time."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from setpoint.localcloud import refusals
from setpoint.localcloud.routes import Call

Item = TypeVar("Item")


def page(items: Sequence[Item], key: Callable[[Item], str], call: Call) -> tuple[list[Item], str | None]:
    """The items of this page, in the order of their keys, and the token of the next page.

    The token is the key of the last item given: a list that changes between two pages repeats nothing.
    """
    size = _page_size(call.query.get("maxResults", "500"))
    after = call.query.get("pageToken", "")
    left = sorted((item for item in items if key(item) > after), key=key)
    return left[:size], key(left[size - 1]) if len(left) > size else None


def _page_size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise refusals.wrong_value("max_results", "TYPE_UINT32", text)
    return min(int(text), 1000)
