"""Trustee's kinds: TrusteeConfig generates a KbsConfig with its ConfigMaps and Secrets; KbsConfig generates the
Deployment and the Service. Neither imports the other; `constants` is what both share.
"""
