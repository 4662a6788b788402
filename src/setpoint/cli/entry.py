"""Where the command starts. `setpoint --help` is answered from a text at hand, before anything else is loaded."""

import sys


def main() -> None:
    """Runs the command line."""
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        from setpoint.cli.help_text import HELP

        sys.stdout.write(HELP)
        return
    from setpoint.cli.main import main as commands

    commands()
