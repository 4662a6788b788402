"""How much of this process is in memory."""

import ctypes
import gc
import resource
import sys
from pathlib import Path


def resident() -> int:
    """Bytes of this process in memory, without those that are free and only kept for the next time."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    return in_memory("VmRSS")


def in_memory(name: str) -> int:
    """What the system says of this process under `name`; where it does not say so, the most that was in memory."""
    gc.collect()
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    kilobytes = next(line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(kilobytes) * 1024
