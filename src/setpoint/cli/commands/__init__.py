"""What each command does: one module per command or pair of commands, loaded when the command runs.

`main` imports a command inside its click callback, so that `setpoint --help` stays fast. Commands do not import each
other; only the demo runs them.
"""
