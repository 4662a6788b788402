"""The command line: entry point, click definitions, manifests, and who executes a command's steps.

A front end: nothing imports it. It may import `app` and everything below, except stores, kinds and `terraform`.
"""
