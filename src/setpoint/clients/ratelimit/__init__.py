"""Rate limiting of calls to services: AIMD token buckets, fair queues, a circuit breaker, and the limiter.

The Google and Kubernetes clients call it before each request; runtime and cli read its figures and name the caller.
Imports clients.clock, clients.scoped_value, core and errors only. Start with `limiter.ServiceLimiter.acquire`.
"""
