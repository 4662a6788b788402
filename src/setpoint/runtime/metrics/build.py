"""The commit that this process was installed from."""

import json
import os
from functools import cache
from typing import Final

REVISION_VARIABLE: Final = "SETPOINT_REVISION"
UNKNOWN: Final = "unknown"


@cache
def revision() -> str:
    """That of the environment, which an image sets; else what pip recorded of a repository."""
    return os.environ.get(REVISION_VARIABLE, "") or _recorded() or UNKNOWN


def _recorded() -> str:
    # Imported for the metrics page alone.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("setpoint").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    found = json.loads(text) if text else {}
    return str(found.get("vcs_info", {}).get("commit_id", ""))
