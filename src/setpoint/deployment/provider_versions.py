"""Versions as Terraform takes them. Ours follow PEP 440; Terraform wants those of semver.org."""

import re
from typing import Final

from setpoint.errors import UserError

_WORDS: Final = {"a": "alpha", "b": "beta", "rc": "rc"}
_OURS: Final = re.compile(
    r"(?P<release>\d+(?:\.\d+){0,2})"
    r"(?:(?P<word>a|b|rc)(?P<number>\d+)|\.dev(?P<dev>\d+))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:\.[a-z0-9]+)*))?"
)
_SEMANTIC: Final = re.compile(r"\d+\.\d+\.\d+(?:-[0-9a-z.]+)?(?:\+[0-9a-z.]+)?")


def semantic(version: str) -> str:
    """The version for Terraform, in the same order: 1.2rc1 becomes 1.2.0-rc.1, 1.2.dev3 becomes 1.2.0-0.dev.3."""
    found = _OURS.fullmatch(version)
    if found is None:
        raise UserError(
            f"{version} is no version for Terraform: install one such as 1.2.3, 1.2.3rc1 or 1.2.3.dev1 of setpoint"
        )
    release = [int(one) for one in found["release"].split(".")]
    numbers = ".".join(str(one) for one in (*release, 0, 0)[:3])
    local = f"+{found['local']}" if found["local"] else ""
    return f"{numbers}{_before(found)}{local}"


def _before(found: "re.Match[str]") -> str:
    """What makes it come before the release."""
    if found["word"]:
        return f"-{_WORDS[found['word']]}.{int(found['number'])}"
    # A number comes before every word: before alpha, as it does here.
    return f"-0.dev.{int(found['dev'])}" if found["dev"] else ""


def checked(release: str) -> str:
    """A version that somebody wrote as Terraform does."""
    if not _SEMANTIC.fullmatch(release):
        raise UserError(f"{release!r} is no version as Terraform writes it: write 1.2.3 or 1.2.3-rc.1")
    return release
