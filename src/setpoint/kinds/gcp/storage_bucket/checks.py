"""What a cluster refuses of a bucket at once, in its own language; the kind itself says the same in Python."""

from typing import Final

from setpoint.core.shape import Check

_NUMBERS: Final = ("age", "daysSinceCustomTime", "daysSinceNoncurrentTime", "numNewerVersions")
_TEXTS: Final = ("createdBefore", "customTimeBefore", "noncurrentTimeBefore")
_LISTS: Final = ("matchesPrefix", "matchesStorageClass", "matchesSuffix")
SAYS_SOMETHING: Final = Check(
    " || ".join(
        [
            *(f"has(self.{name})" for name in _NUMBERS),
            *(f"(has(self.{name}) && self.{name} != '')" for name in _TEXTS),
            *(f"(has(self.{name}) && self.{name}.size() > 0)" for name in _LISTS),
            "(has(self.withState) && !(self.withState in ['', 'ANY']))",
        ]
    ),
    "says nothing, so that the rule would apply to every object at once: write age: 0 if that is meant",
)
TWO_REGIONS: Final = Check("self.dataLocations.size() > 1", "has to name two regions", "dataLocations")
# In any order, and in any case.
SAME_REGIONS: Final = """
    self.dataLocations.size() != 2 || oldSelf.dataLocations.size() != 2
    || (self.dataLocations[0] + ' ' + self.dataLocations[1]).lowerAscii() in [
      (oldSelf.dataLocations[0] + ' ' + oldSelf.dataLocations[1]).lowerAscii(),
      (oldSelf.dataLocations[1] + ' ' + oldSelf.dataLocations[0]).lowerAscii()]
"""
