"""The memory of this process."""

import ctypes
import gc
import resource
import sys
from pathlib import Path


def resident_bytes() -> int:
    """The resident set size in bytes, after garbage is collected and free heap memory is returned to the system."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    return proc_status_bytes("VmRSS")


def proc_status_bytes(name: str) -> int:
    """The field `name` of /proc/self/status in bytes; where there is no such file, the peak resident set size."""
    gc.collect()
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    kibibytes = next(line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(kibibytes) * 1024
