"""What each command does: one module per command or pair of commands, loaded when the command runs.

`definitions` imports a command inside its click callback, so that one command does not load the others. Commands do not
import each other; only the demo runs them.
"""
