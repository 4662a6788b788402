"""Texts that say much the same, made small: what they have in common with others is not written again."""

import zlib
from typing import Final

import msgspec

_LEVEL: Final = 3
# How far back in bytes, as a power of two, something can be said to be the same as before.
_REACH: Final = 14
_MEMORY: Final = 7
# What two have in common many have. After that only a text that is not made this many times smaller is worth a lesson.
_FIRST_LESSONS: Final = 2
_WORTH: Final = 3
_MOST_LESSONS: Final = 8


class Packed(msgspec.Struct, frozen=True, gc=False):
    """What a text says beside a sample, which many share."""

    sample: bytes
    data: bytes

    def text(self) -> bytes:
        """The text."""
        return zlib.decompressobj(-_REACH, self.sample).decompress(self.data)


class Packer:
    """Packs texts of one sort. The first, and a few that are unlike all before them, become a part of the sample."""

    def __init__(self) -> None:
        self._sample = b""
        self._primed = _primed(self._sample)
        self._lessons = 0

    def pack(self, text: bytes) -> Packed:
        """The text, made small."""
        data = self._said(text)
        if self._lessons < _FIRST_LESSONS or (len(data) * _WORTH > len(text) and self._lessons < _MOST_LESSONS):
            self._learn(text)
            data = self._said(text)
        return Packed(self._sample, data)

    def _said(self, text: bytes) -> bytes:
        # A copy: what it has learned of this text is nothing to the next.
        packing = self._primed.copy()
        return packing.compress(text) + packing.flush()

    def _learn(self, text: bytes) -> None:
        self._lessons += 1
        # The newest is the nearest; what is out of reach would only be kept.
        self._sample = (self._sample + text)[-(1 << _REACH) :]
        self._primed = _primed(self._sample)


def _primed(sample: bytes) -> "zlib._Compress":
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, -_REACH, _MEMORY, zlib.Z_DEFAULT_STRATEGY, sample)
