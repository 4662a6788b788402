"""Encryption of secret values at rest: AES-256-GCM under a random key in a file of its own."""

import hashlib
import os
import stat
import threading
from pathlib import Path
from typing import Final

from setpoint.errors import StoreError
from setpoint.file_creation import create_file

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
# An encrypted value: format, key id, nonce, then the cipher text with its tag.
_FORMAT: Final = b"\x01"
_KEY_ID_BYTES: Final = 8
_HEADER_BYTES: Final = len(_FORMAT) + _KEY_ID_BYTES


class SecretCipher:
    """Encrypts and decrypts values with the key in `path`. The key is created with the first encryption."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The writer's thread encrypts while the event loop decrypts.
        self._lock = threading.Lock()
        self._key: _Key | None = None

    def encrypt(self, plain: bytes, associated_data: bytes) -> bytes:
        """`plain`, encrypted; it can be decrypted only with the same `associated_data`."""
        key = self._loaded() or self._made()
        nonce = os.urandom(_NONCE_BYTES)
        return key.head + nonce + key.cipher.encrypt(nonce, plain, associated_data)

    def decrypt(self, encrypted: bytes, associated_data: bytes) -> bytes:
        """The plain value; StoreError when the key is another one, or the value was changed."""
        from cryptography.exceptions import InvalidTag

        key = self._key_of(encrypted)
        body = encrypted[_HEADER_BYTES:]
        nonce, text = body[:_NONCE_BYTES], body[_NONCE_BYTES:]
        try:
            return key.cipher.decrypt(nonce, text, associated_data)
        except InvalidTag as error:
            raise StoreError(
                "an encrypted value was changed on disk, or moved to another resource: "
                "restore the store from a copy, or delete the resource and apply it again"
            ) from error

    def require_key_of(self, encrypted: bytes) -> None:
        """StoreError unless the key of `encrypted` is there."""
        self._key_of(encrypted)

    def _key_of(self, encrypted: bytes) -> "_Key":
        key = self._loaded()
        if key is None:
            raise StoreError(
                f"{self._path} is missing, and the store holds values encrypted with it: put the key file back. "
                "Without it their values are lost: then move the store away and apply everything again"
            )
        if not encrypted.startswith(key.head):
            raise StoreError(f"{self._path} is not the key of this store: put back the one it was made with")
        return key

    def _loaded(self) -> "_Key | None":
        with self._lock:
            if self._key is None and self._path.exists():
                self._key = _Key(_read_key(self._path))
            return self._key

    def _made(self) -> "_Key":
        with self._lock:
            self._key = _Key(_make_key(self._path))
            return self._key


class _Key:
    """A key, and the header of every value encrypted with it."""

    def __init__(self, key: bytes) -> None:
        # Imported here, because most stores never hold a secret value, and the import costs 15 ms.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.cipher = AESGCM(key)
        self.head = _FORMAT + hashlib.sha256(b"setpoint key id" + key).digest()[:_KEY_ID_BYTES]


def _read_key(path: Path) -> bytes:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read the key {path}: {error.strerror}; allow it") from error
    if mode & 0o077:
        raise StoreError(f"{path} can be read by others (mode {mode:04o}): run chmod 600 on it")
    if len(key) != _KEY_BYTES:
        raise StoreError(f"{path} is no key: it has {len(key)} bytes instead of {_KEY_BYTES}; put the key file back")
    return key


def _make_key(path: Path) -> bytes:
    """A new key, synced to disk before anything is encrypted with it."""
    key = os.urandom(_KEY_BYTES)
    fresh = path.with_name(f"{path.name}.new")
    try:
        # Left by a process that was killed right here: the lock keeps other processes out.
        fresh.unlink(missing_ok=True)
        create_file(fresh, [key])
        fresh.rename(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"cannot make the key {path}: {error.strerror}; allow writing in its folder") from error
    return key


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
