"""Writes docs/dashboard-api.json anew: `python -m tests.dashboard.write_openapi`."""

import json

from setpoint.dashboard.api.openapi import openapi_document
from tests.dashboard.test_openapi import COMMITTED


def main() -> None:
    """Writes the document."""
    COMMITTED.write_text(f"{json.dumps(openapi_document(), indent=2)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
