"""IAMServiceAccountKey: a key of a service account, whose private part goes into a Secret.

Imported by the composition root; imports the Google client and what Google's kinds share. Start at `kind.py`.
"""
