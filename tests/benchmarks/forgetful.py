"""A process that lists every resource of a fleet but one, and misses one event."""

from benchmarks.errands import Found, Order, wait_for_word


async def start(order: Order) -> Found:
    """Every resource but one."""
    return Found(order.expected - 1, cpu=1.0, wall=1.0, memory=1)


async def storm(order: Order) -> Found:
    """Every event but one."""
    await wait_for_word()
    return Found(order.events - 1, cpu=1.0, wall=1.0, memory=1)
