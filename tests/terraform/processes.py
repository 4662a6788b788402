"""The processes of a Terraform that tests started."""

import subprocess
from pathlib import Path


def children(pid: int) -> list[int]:
    """The children of a process, of all its threads."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for one in lists for child in one.read_text().split()]


def process_group(group: int) -> list[int]:
    """The processes of a group."""
    found = subprocess.run(["ps", "-A", "-o", "pid=,pgid="], capture_output=True, text=True, check=True)
    pairs = [line.split() for line in found.stdout.splitlines()]
    return [int(pid) for pid, of in pairs if int(of) == group]
