"""Lengths of time as kubectl writes them: `45s`, `3m12s`, `5h`, `2d`.   Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from policy import values


def between(since: datetime | None, now: datetime) -> str:
    """How long ago; `-` where that is not known."""
    return "-" if since is None else length(now - since)


def length(span: timedelta) -> str:
    """Two units while they matter, then one; what is to come counts as nothing, for clocks differ."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d"


def stamp(at: datetime | None) -> str | None:
    """For programs: RFC 3339 in UTC."""
    return None if at is None else values.format_time(at)
