"""The click definitions of the commands, by topic. `main` lists them.

Each command imports its module of `commands` when it runs, so that starting one does not load the others.
"""
