"""What Terraform starts: `python -m tests.terraform.probe [NAME]`."""

import sys

from setpoint.terraform.rpc.server import serve
from tests.terraform.probe.provider import ProbeProvider

if __name__ == "__main__":
    serve(ProbeProvider(*sys.argv[1:]))
