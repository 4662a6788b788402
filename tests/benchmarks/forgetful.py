"""Somebody who has a fleet in mind, but for one resource, and misses one event."""

from benchmarks.errands import Found, Order, wait_for_word


async def start(order: Order) -> Found:
    """Everything but one."""
    return Found(order.expected - 1, cpu=1.0, wall=1.0, memory=1)


async def storm(order: Order) -> Found:
    """Every event but one."""
    await wait_for_word()
    return Found(order.events - 1, cpu=1.0, wall=1.0, memory=1)
