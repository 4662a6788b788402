"""The group `peers`: `setpoint run`, a controller of controller-runtime and one of kopf do the same work in turns.

The work item is a custom resource of 4 KB, a KubernetesObject, that holds the manifest of a ConfigMap. All three
controllers reconcile this one kind on one API server: each keeps a ConfigMap as the resource says, corrects what
another writer changed in it, and writes `observedGeneration` and the condition Ready into the status of the resource.
It is the one kind of setpoint whose service is the API server itself, so that no other server is part of the work.

Each controller does the work as its users do:

* controller-runtime and kopf read both objects from their caches, and give the ConfigMap an owner reference. Neither
  elects a leader. The controller of controller-runtime writes no events: it would have to be told to.
* kopf is measured twice. The bars are about kopf as its documentation has it: each setting has its default, and as kopf
  has no client for other objects, handlers are functions that use the official client for Python. The other one is
  tuned: it does not scan for CRDs, and its handlers are coroutines that write by the cheapest client there is, a bare
  request of aiohttp. Neither posts Events: kopf 1.45 does so only for handlers that ask for it.
* setpoint records the object and a finalizer before it writes, applies as the ServiceAccount of the namespace, writes
  events, renews a lease, and caches no ConfigMap. None of that can be turned off.

Drift is an edit of a ConfigMap by another writer; all three watch ConfigMaps. A resync is what each does by itself when
its period ends: the resync of an informer, a timer of kopf, a resync of setpoint. Requests are counted by the audit log
of the API server, CPU time and memory by the kernel.
"""
