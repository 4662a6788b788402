"""A process that lists every resource of a fleet but one, and misses one event."""

from benchmarks.measured_process import Job, Usage, signal_ready_and_wait


async def start(job: Job) -> Usage:
    """Every resource but one."""
    return Usage(job.expected - 1, cpu=1.0, wall=1.0, memory=1)


async def watch_and_cache(job: Job) -> Usage:
    """Every event but one."""
    await signal_ready_and_wait()
    return Usage(job.events - 1, cpu=1.0, wall=1.0, memory=1)
