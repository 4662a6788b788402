"""Checks that no file names the folders or the package index of one machine."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LOCK_FILES = frozenset(
    {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "yarn.lock", "pnpm-lock.yaml"}
)

# The patterns are put together from pieces, so that this file does not match itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~$})>\]*-])/(?:" + r"(?:root|work)(?![\w-])|home/\w)"),
    "a package index": re.compile(r"index" + r"[-_]url", re.IGNORECASE),
    "a download address": re.compile(r'"resolved"' + r':\s*"http'),
}


def main(root: Path) -> int:
    """Prints every finding in the files that git tracks or would track; 1 when there is one, else 0."""
    names = known_to_git(root)
    if names is None:
        print("hygiene: not a git work tree, nothing to look at")
        return 0
    findings = [finding for name in names for finding in findings_in(root, name)]
    for finding in findings:
        print(finding)
    if not findings:
        print(f"hygiene: {len(names)} files, all clean")
    return 1 if findings else 0


def known_to_git(root: Path) -> list[str] | None:
    """Tracked files and new ones that are not ignored; `None` outside a work tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    names = {name for name in listed.stdout.decode().split("\0") if name}
    return sorted(name for name in names if (root / name).is_file())


def findings_in(root: Path, name: str) -> Iterator[str]:
    """One line of text for each thing in the file `name` that must not be there."""
    if Path(name).name in LOCK_FILES:
        yield f"{name}:1: a lock file with download addresses: pin in requirements/ instead"
    text = (root / name).read_bytes().decode(errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        for what, pattern in FORBIDDEN.items():
            if pattern.search(line):
                yield f"{name}:{number}: {what}: {line.strip()[:100]}"


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
