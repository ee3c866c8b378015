"""What a command works with: the way into the cluster, what was asked for, where to write, and the time."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TextIO

from cluster.runtime import Runtime
from console import screen
from console.door import Door, Unusable
from descheduler.tables import Table
from policy import values


@dataclass(frozen=True, slots=True)
class Session:
    """One call of the plugin."""

    options: argparse.Namespace
    out: TextIO
    err: TextIO
    runtime: Runtime
    connected: Door | None = None
    """None for commands that need no cluster."""

    @property
    def door(self) -> Door:
        """The cluster."""
        if self.connected is None:
            raise Unusable("this needs a cluster")
        return self.connected

    @property
    def now(self) -> datetime:
        """The time of day."""
        return self.runtime.wall()

    @property
    def namespace(self) -> str:
        """Where to look for what has a namespace: the flag, then the context, which anything may stand in."""
        if self.options.namespace:
            return str(self.options.namespace)
        found = self.door.namespace
        if not values.is_dns_label(found):
            raise Unusable(f"the namespace of the context, {found!r}, is not accepted: name another with -n")
        return found

    @property
    def scope(self) -> str | None:
        """The namespace of a list; None with -A."""
        return None if self.options.all_namespaces else self.namespace

    @property
    def wide(self) -> bool:
        """Whether more columns are wanted."""
        return bool(self.options.output == "wide")

    @property
    def machine(self) -> bool:
        """Whether a program reads this."""
        return self.options.output in {"json", "yaml"}

    @property
    def live(self) -> bool:
        """Whether what is written may be written over: a person looks at a terminal."""
        return self.out.isatty() and not self.machine

    def show(self, report: dict[str, Any], pages: Iterable[Table]) -> None:
        """In the form that was asked for."""
        screen.write(self.out, self.options.output, report, pages)

    def say(self, line: str) -> None:
        """One line of text; programs get the object at the end instead."""
        if not self.machine:
            self.out.write(screen.clean(line) + "\n")
            self.out.flush()

    def warn(self, line: str) -> None:
        """Something to know that changes nothing."""
        self._tell("warning", line)

    def complain(self, line: str) -> None:
        """What did not come to a good end."""
        self._tell("error", line)

    def _tell(self, kind: str, line: str) -> None:
        self.out.flush()
        self.err.write(f"{kind}: {screen.clean(line)}\n")
        self.err.flush()
