"""`python -m setpoint.localcloud`: runs a local cloud until it is interrupted."""

import argparse
import sys
from pathlib import Path

from setpoint.core.values.messages import printable
from setpoint.errors import SetpointError
from setpoint.localcloud.server import serve


def main() -> int:
    """Runs it; 1 when it could not start."""
    parser = argparse.ArgumentParser(
        prog="python -m setpoint.localcloud",
        description="Strict local Google services, for demos and tests. It is not Google.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: this machine only)")
    parser.add_argument("--port", type=int, default=0, help="the port; 0, the default, takes a free one")
    parser.add_argument("--state", type=Path, help="a JSON file to remember everything in")
    options = parser.parse_args()
    try:
        serve(options.host, options.port, options.state)
    except SetpointError as error:
        sys.stderr.write(f"{printable(str(error))}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
