"""`python -m tests.docs.command_reference` rewrites `docs/commands.md` with what each `--help` prints now."""

import re
from pathlib import Path
from typing import Final

from tests.docs.sessions import Shell

PAGE: Final = Path("docs/commands.md")
_SESSION: Final = re.compile(r"^```console\n\$ (setpoint(?: [^\n]*)? --help)\n.*?^```$", re.DOTALL | re.MULTILINE)


def with_help_texts(page: str) -> str:
    """The page with the output of each `--help` in it."""
    return _SESSION.sub(lambda found: f"```console\n$ {found[1]}\n{Shell().run(found[1])}```", page)


if __name__ == "__main__":
    PAGE.write_text(with_help_texts(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
