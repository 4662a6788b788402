"""Drivers: what takes or follows steps until every resource of a set is done, without a controller.

`runner` takes the steps itself, `follower` reads the statuses that another process writes, `object_watch` wakes a
wait. Imported by the front ends and `objects`; its loop also by the runtime.
"""
