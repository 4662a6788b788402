"""`python -m benchmarks.peers.cpu_profile FILE SCRIPT ARGUMENT...`: runs a script, and writes its profile to FILE.

Unlike `python -m cProfile` it counts the CPU time of the thread: on a busy machine, the time by the clock is mostly
that of other processes.
"""

import cProfile
import runpy
import sys
import time


def main() -> None:
    """Writes the profile when the script ends, even by an error."""
    _, file, *arguments = sys.argv
    sys.argv = arguments
    profile = cProfile.Profile(time.thread_time)
    try:
        profile.runcall(runpy.run_path, arguments[0], run_name="__main__")
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    main()
