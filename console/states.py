"""What can be the matter with a node.   Values only."""

from enum import StrEnum


class State(StrEnum):
    """The worst first. A node may be in several."""

    NOT_READY = "not-ready"
    INTERRUPTED = "interrupted"
    """It goes away soon, whatever we do."""
    REBALANCE = "rebalance"
    """The platform says that it may go away."""
    MAINTENANCE = "maintenance"
    CORDONED = "cordoned"
    HOT = "hot"
    """A strategy would relieve it."""
    READY = "ready"
    """Nothing is the matter."""
