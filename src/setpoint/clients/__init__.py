"""Clients of everything outside the process. Every foreign failure becomes one of our errors here.

Here: HTTP, fencing of writes, the write guard of previews, the local admin API; one package each for the transport of
HTTP, rate limiting, Google and Kubernetes. Imports core and errors only; stores, kinds, runtime and the front ends
import it.
Start with `http.HttpClient.send`: fences, interceptors and errors meet there.
"""
