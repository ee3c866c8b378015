"""May this pod be moved at all?   Pure: ordered, named predicates; all run, and every reason is reported."""

from descheduler.guards.case import Context
from descheduler.guards.table import GUARDS, Guard, reasons
from descheduler.guards.wishes import deletion_cost

__all__ = ["GUARDS", "Context", "Guard", "deletion_cost", "reasons"]
