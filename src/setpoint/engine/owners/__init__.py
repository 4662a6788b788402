"""Owners: resources that stand for several child objects, merged with other writers' edits field by field.

`children` observes and plans, `reconcile` creates, updates and deletes, `status` reports; `generated_secret` keeps the
Secret of a resource of a kind. Called by `step.reconcile`; reaches children through the store alone.
"""
