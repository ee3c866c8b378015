"""How much of what is generated is tried: a part of it each time, and more where somebody asks for it.

The same examples are tried on every machine, so that a red run can be repeated; trying twice as many of the same
twice a day finds little. `make properties` tries twenty times as many, and those of hypothesis are new each time.
"""

import os

EFFORT = float(os.environ.get("SPOTSHIFT_EFFORT", "1"))


def many(count: int) -> int:
    """So many at an ordinary effort."""
    return max(1, round(count * EFFORT))
