"""Where in a value something is: names of attributes, keys of maps, places in lists."""

from typing import TypeAlias

# Text names an attribute of an object or a key of a map: the type of what holds it says which.
Path: TypeAlias = tuple[str | int, ...]


def shown(path: Path) -> str:
    """A path as people write it: `ports[0].name`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")
