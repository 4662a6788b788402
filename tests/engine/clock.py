"""Time that passes only while a caller sleeps."""

from setpoint.testing.clock import VirtualClock as FakeClock

__all__ = ["FakeClock"]
