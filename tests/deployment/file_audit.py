"""The command with an audit hook: every file that it opens for writing is printed on standard error."""

from typing import Final

# For `python -c`, with the arguments of the command after it.
WATCHED: Final = """
import os, sys

def report(event, arguments):
    # A number is a descriptor that is open already: standard output and standard error.
    if event != "open" or isinstance(arguments[0], int):
        return
    if isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        print("written:", arguments[0], file=sys.stderr)

sys.addaudithook(report)
from setpoint.cli.entry import main
sys.argv[0] = "setpoint"
main()
"""
