"""Passwords are kept as salted hashes, and only ever compared."""

import hashlib
import hmac
import secrets


def salt_and_hash(password: str) -> tuple[str, str]:
    """A fresh salt, and the hash of `password` with it."""
    salt = secrets.token_hex(8)
    return salt, _hash(salt, password)


def is_password(salt: str, password_hash: str, password: str) -> bool:
    """Whether the hash is that of `password`; no password at all never matches."""
    return bool(password_hash) and hmac.compare_digest(password_hash, _hash(salt, password))


def _hash(salt: str, password: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), 1000).hex()
