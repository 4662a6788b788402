"""The kinds of IAM that live in the policy of another object, such as IAMPolicyMember; and keys of service accounts.

Imported by the composition root; imports the catalogue, the engine, the Google client and what Google's kinds share.
"""
