"""Terraform plugin folder: launcher scripts and their paths, and our PEP 440 versions as semantic versions."""

import re
from pathlib import PurePosixPath
from typing import Final

from setpoint import __version__
from setpoint.errors import UserError

_PRE_RELEASES: Final = {"a": "alpha", "b": "beta", "rc": "rc"}
_PEP_440: Final = re.compile(
    r"(?P<release>\d+(?:\.\d+){0,2})"
    r"(?:(?P<word>a|b|rc)(?P<number>\d+)|\.dev(?P<dev>\d+))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:\.[a-z0-9]+)*))?"
)
_SEMANTIC: Final = re.compile(r"\d+\.\d+\.\d+(?:-[0-9a-z.]+)?(?:\+[0-9a-z.]+)?")


def semantic_version(version: str) -> str:
    """The semantic version of a PEP 440 one; order is kept: 1.2rc1 is 1.2.0-rc.1, 1.2.dev3 is 1.2.0-0.dev.3."""
    found = _PEP_440.fullmatch(version)
    if found is None:
        raise UserError(
            f"{version} is no version for Terraform: install one such as 1.2.3, 1.2.3rc1 or 1.2.3.dev1 of setpoint"
        )
    release = [int(one) for one in found["release"].split(".")]
    numbers = ".".join(str(one) for one in (*release, 0, 0)[:3])
    local = f"+{found['local']}" if found["local"] else ""
    return f"{numbers}{_pre_release(found)}{local}"


def _pre_release(found: "re.Match[str]") -> str:
    """The pre-release part."""
    if found["word"]:
        return f"-{_PRE_RELEASES[found['word']]}.{int(found['number'])}"
    # A number sorts before every word, and .dev before alpha in PEP 440, too.
    return f"-0.dev.{int(found['dev'])}" if found["dev"] else ""


def require_semantic_version(release: str) -> str:
    """The version, if it is a semantic one; UserError if not."""
    if not _SEMANTIC.fullmatch(release):
        raise UserError(f"{release!r} is no version as Terraform writes it: write 1.2.3 or 1.2.3-rc.1")
    return release


PROGRAM: Final = "terraform-provider-setpoint"
SOURCE: Final = "setpoint/setpoint"
# The default registries of Terraform and OpenTofu.
HOSTS: Final = ("registry.terraform.io", "registry.opentofu.org")
PLATFORMS: Final = ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")
# The folder of pointers to installed programs, within XDG_CONFIG_HOME.
POINTERS: Final = PurePosixPath("setpoint", PROGRAM)

# The same on every machine: lock files contain its hash. Terraform shows the first line of standard output.
_LAUNCHER: Final = """\
#!/bin/sh
# Starts the provider of setpoint VERSION for Terraform. This text is the same on every machine.
pointer="${XDG_CONFIG_HOME:-$HOME/.config}/POINTERS/SEMANTIC"
here=$(command -v PROGRAM)
there=
if [ -r "$pointer" ]; then
  IFS= read -r there < "$pointer"
fi
for found in "$here" "$there"; do
  if [ -f "$found" ] && [ -x "$found" ]; then
    exec "$found" VERSION "$there"
  fi
done
lacks="setpoint VERSION is not here: PROGRAM is not on the PATH, and $pointer names no program."
todo="Run: pip install setpoint==VERSION && setpoint terraform install"
if [ -n "$TF_PLUGIN_MAGIC_COOKIE" ]; then
  echo "$lacks $todo"
fi
echo "$lacks $todo" >&2
exit 1
"""
_REQUIRED: Final = """\
terraform {
  required_providers {
    setpoint = {
      source  = "SOURCE"
      version = "SEMANTIC"
    }
  }
}
"""


def launcher(version: str = __version__) -> str:
    """The script that Terraform starts: it finds the program of this version, on the PATH or by a pointer."""
    words = {"VERSION": version, "SEMANTIC": semantic_version(version), "PROGRAM": PROGRAM, "POINTERS": str(POINTERS)}
    return _filled(_LAUNCHER, words)


def required_providers(version: str = __version__) -> str:
    """The configuration block that requires this version."""
    return _filled(_REQUIRED, {"SOURCE": SOURCE, "SEMANTIC": semantic_version(version)})


def launcher_paths(release: str) -> tuple[PurePosixPath, ...]:
    """The paths of launchers in a plugin folder, for every host and platform. `release` is a semantic version."""
    return tuple(
        PurePosixPath(host, SOURCE, release, platform, f"{PROGRAM}_v{release}")
        for host in HOSTS
        for platform in PLATFORMS
    )


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
