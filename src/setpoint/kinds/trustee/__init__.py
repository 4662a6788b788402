"""Kinds of Trustee: attestation and the keys that it opens."""
