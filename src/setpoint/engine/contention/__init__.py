"""What several parties want at once: operations that exclude each other, intents that alternate, edits of a status.

Pure bookkeeping for the steps, which read and write it through their context; imports no other package than `core`, and
of `engine` only names and ports.
"""
