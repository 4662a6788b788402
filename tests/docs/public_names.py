"""`python -m tests.docs.public_names` writes `docs/public-names.md` anew: the names of `import setpoint`, with docs."""

import inspect
import re
from pathlib import Path
from typing import Final

import setpoint

PAGE: Final = Path("docs/public-names.md")
_HEAD: Final = """# Public names

What `import setpoint` offers. Each is loaded when it is first used, and keeps its name and its meaning. Errors are the
classes of `setpoint.errors`. [Embed the engine](how-to/embed-the-engine.md) shows how sessions are used.

`python -m tests.docs.public_names` writes this page anew, from the docstrings.

| name | what it is |
|---|---|
"""
# Values, which have no docstring of their own.
_VALUES: Final = {
    "MISSING": "Stands for a value that is absent, where null is another thing.",
    "__version__": "The version.",
}
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?=\s|$)", re.DOTALL)


def page_text() -> str:
    """The page."""
    return _HEAD + "".join(f"| `{name}` | {_meaning(name)} |\n" for name in sorted(setpoint.__all__, key=str.casefold))


def _meaning(name: str) -> str:
    text = _VALUES.get(name) or inspect.getdoc(getattr(setpoint, name)) or ""
    found = _SENTENCE.match(" ".join(text.split()))
    assert found is not None, f"setpoint.{name} has no docstring"
    return found[1].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
