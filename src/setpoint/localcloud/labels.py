"""Labels, as both services take them."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from setpoint.localcloud.refusals import Refusal

# Small letters of any script, digits, underscore, hyphen; the upper-case check is done on the text itself.
_WORD: Final = re.compile(r"[\w-]*")
_MOST: Final = 64


def check_labels(labels: Mapping[str, str], refuse: Callable[[str], Refusal]) -> None:
    """Refuses labels that break the rules of names: lower case, 63 characters, a letter first, at most 64 of them."""
    if len(labels) > _MOST:
        raise refuse(f"There are {len(labels)} labels, {_MOST} is the limit")
    for key, value in labels.items():
        if not key or not key[0].isalpha() or not _is_word(key):
            raise refuse(f"Invalid label key ({key})")
        if not _is_word(value):
            raise refuse(f"Invalid value ({value}) of the label {key}")


def _is_word(text: str) -> bool:
    return len(text) <= 63 and _WORD.fullmatch(text) is not None and text == text.lower()
