"""Pictures of clusters that were never there: small ones, large ones, and one full of markup."""

from typing import Any

from console.web.picture import Picture, Sample

MARKUP = "<img src=x onerror=\"document.title='taken'\"><script>"


def node(name: str, *, tiles: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "capacity": "spot",
        "zone": "a",
        "states": ["ready"],
        "load": 40.0,
        "shares": {"cpu": 40.0, "memory": 20.0, "pods": 10.0},
        "used": None,
        "pods": tiles,
        "leaving": 0,
        "coming": 0,
        "drain": None,
        "createdAt": "2026-11-16T06:00:00Z",
        "tiles": [(f"shop/{name}-{number}", 0) for number in range(tiles)],
        **more,
    }


def move(uid: str, **more: Any) -> dict[str, Any]:
    return {
        "uid": uid,
        "namespace": "shop",
        "name": f"m-{uid}",
        "pod": f"web-{uid}",
        "from": "n1",
        "to": "n2",
        "landed": None,
        "replacement": None,
        "onTarget": None,
        "strategy": "LoadBalancing",
        "mode": "Evict",
        "phase": "InProgress",
        "step": "Evict",
        "attempts": 0,
        "cause": None,
        "message": None,
        "createdAt": "2026-11-16T06:00:00Z",
        "startedAt": None,
        "finishedAt": None,
        **more,
    }


def summary(nodes: int, pods: int, **more: Any) -> dict[str, Any]:
    return {
        "installed": True,
        "leader": {"holder": "a-1", "leads": True},
        "mode": "enforce",
        "emergencyStop": None,
        "settings": {"source": "the defaults", "mistakes": []},
        "lastPass": {"at": "2026-11-16T06:00:00Z", "moves": 1, "refusals": 2},
        "nodes": {"total": nodes, "spot": nodes, "states": {"ready": nodes}},
        "pods": {"total": pods, "pending": 0},
        "migrations": {"open": 0, "byPhase": {}, "lastFinishedAt": None},
        "budgets": {"total": 0, "temporary": 0, "withoutRoom": []},
        "coolDowns": [],
        "assumed": [],
        **more,
    }


def picture(*nodes: dict[str, Any], at: float = 1_790_000_000.0, **more: Any) -> Picture:
    told = summary(len(nodes), sum(it["pods"] for it in nodes), **more.pop("summary", {}))
    parts: dict[str, Any] = {"moves": (), "planned": (), "refusals": {}, "settings": {"mode": "enforce"}, **more}
    return Picture(told, {it["name"]: it for it in nodes}, sample=Sample(at, 40.0, 60.0, 20.0, 75.0, 1), **parts)


def large(nodes: int = 1_000, pods: int = 30_000) -> Picture:
    return picture(*(node(f"node-{number:04}", tiles=pods // nodes) for number in range(nodes)))


def hostile() -> Picture:
    """Everything that a name, a message or a value could be if nobody checked it."""
    reason = {"namespace": MARKUP, "pod": MARKUP, "node": MARKUP, "strategy": MARKUP, "text": MARKUP}
    planned = {"namespace": MARKUP, "pod": MARKUP, "from": MARKUP, "to": MARKUP, "strategy": MARKUP, "reason": MARKUP}
    return picture(
        node(MARKUP, pods=1, zone=MARKUP, drain=MARKUP) | {"tiles": [(MARKUP, 0)]},
        moves=(move("1", pod=MARKUP, message=MARKUP, **{"from": MARKUP, "to": MARKUP}),),
        planned=(planned,),
        refusals={MARKUP: (reason,)},
        settings={MARKUP: MARKUP},
        summary={"emergencyStop": MARKUP, "assumed": [MARKUP], "settings": {"source": MARKUP, "mistakes": [MARKUP]}},
    )
