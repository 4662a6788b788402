"""Projects exist as soon as they are named."""

import hashlib


def project_number(project: str) -> str:
    """The number of a project: twelve digits, always the same for the same project."""
    mark = int.from_bytes(hashlib.sha256(project.encode()).digest()[:8], "big")
    return str(10**11 + mark % (9 * 10**11))
