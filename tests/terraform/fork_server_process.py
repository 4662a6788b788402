"""A process of a provider, for tests: it is served for by a fork server, or leaves one behind and serves by itself.

It serves by the behaviour in BEHAVIOUR, and prints what it is: its process id, whether it is a fork, its directory.
"""

import json
import os
import signal
import sys
import time
from typing import TextIO

from setpoint.terraform.rpc.fork_client import served_by_fork_server
from setpoint.terraform.rpc.fork_server import leave_fork_server

_FIRST = os.getpid()
_prepared: list[int] = []


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def serve() -> None:
    """Prints what this process is, and does what BEHAVIOUR says."""
    shown = {
        "process": os.getpid(),
        "parent": os.getppid(),
        "is_fork": os.getpid() != _FIRST,
        "prepared": _prepared,
        "directory": os.getcwd(),
        "variables": dict(os.environ),
    }
    _write(sys.stdout, json.dumps(shown))
    _write(sys.stderr, "on standard error")
    match os.environ.get("BEHAVIOUR", ""):
        case "exit 3":
            sys.exit(3)
        case "fail":
            raise ValueError("with a secret")
        case "until SIGTERM":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
            _write(sys.stdout, "ready")
            time.sleep(60)
        case "sleep":
            _write(sys.stdout, "ready")
            time.sleep(60)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            return


if __name__ == "__main__":
    code = served_by_fork_server()
    if code is not None:
        sys.exit(code)
    leave_fork_server(serve, lambda: _prepared.append(os.getpid()), float(os.environ.get("IDLE_S", "30")))
    serve()
