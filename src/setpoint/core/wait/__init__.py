"""`waitFor`: what a resource waits for, whether a live object satisfies it, and the outputs that dependants read.

Used by the engine and by front ends for Kubernetes objects; imports the rest of the core except `core.merge`.
"""
