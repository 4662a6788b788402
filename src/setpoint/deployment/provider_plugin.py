"""Where Terraform and OpenTofu look for the provider, and what they find there."""

from pathlib import PurePosixPath
from typing import Final

from setpoint import __version__
from setpoint.deployment.provider_versions import semantic

PROGRAM: Final = "terraform-provider-setpoint"
SOURCE: Final = "setpoint/setpoint"
# Where Terraform and OpenTofu look when a configuration names no host.
HOSTS: Final = ("registry.terraform.io", "registry.opentofu.org")
PLATFORMS: Final = ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")
# The folder of pointers, within that of the user's settings.
POINTERS: Final = PurePosixPath("setpoint", PROGRAM)

# Lock files have a hash of it: nothing of a machine may be in it. Terraform shows the first line of standard output.
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
    """What Terraform starts: a script that finds the program of this version, by the PATH or by a pointer."""
    words = {"VERSION": version, "SEMANTIC": semantic(version), "PROGRAM": PROGRAM, "POINTERS": str(POINTERS)}
    return _filled(_LAUNCHER, words)


def required_providers(version: str = __version__) -> str:
    """What a configuration says to get this version."""
    return _filled(_REQUIRED, {"SOURCE": SOURCE, "SEMANTIC": semantic(version)})


def places(release: str) -> tuple[PurePosixPath, ...]:
    """Where launchers are in a folder of plugins: for every host and platform. `release` is as Terraform takes it."""
    return tuple(
        PurePosixPath(host, SOURCE, release, platform, f"{PROGRAM}_v{release}")
        for host in HOSTS
        for platform in PLATFORMS
    )


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
