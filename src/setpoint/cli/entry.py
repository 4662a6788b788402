"""Where the command starts. `setpoint --help` is answered from a text at hand, before anything else is loaded."""

import os
import sys


def main() -> None:
    """Runs the command line."""
    # A shell that completes a line calls without arguments, too.
    if sys.argv[1:] in ([], ["-h"], ["--help"]) and "_SETPOINT_COMPLETE" not in os.environ:
        from setpoint.cli.help_text import HELP

        sys.stdout.write(HELP)
        return
    from setpoint.cli.main import main as commands

    commands()
