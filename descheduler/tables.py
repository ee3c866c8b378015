"""Plans and explanations as text for people: tables on a terminal, aligned columns elsewhere.   Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

Plain = dict[str, Any]

SHOWN_NODES: Final = 20
"""Nodes listed without -v beside those that change: the fullest."""

PLACEMENT: Final = {
    "spot": "spot",
    "tier": "tier",
    "spotPercentage": "spot-percentage",
    "minOnDemand": "min-on-demand",
}
"""Keys of a report as people write them."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, names of columns and rows of text; or, without columns, lines of text."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""


def of_plan(plan: Plain, *, verbose: bool, more: str = "-v") -> Iterator[Table]:
    """A plan as `report.of_plan` gives it. `more` is the flag that makes it verbose."""
    yield from _assumed(plan["summary"]["assumed"])
    yield from _left_out(plan["summary"]["leftOut"])
    yield _moves(plan)
    yield from _refusals(plan, verbose=verbose, more=more)
    yield _nodes(plan["nodes"], verbose=verbose, more=more)
    yield Table(_sentence(plan["summary"]))


def _assumed(gaps: Sequence[str]) -> Iterator[Table]:
    if gaps:
        yield Table("Not everything is known, so this may not be what would happen", ("ASSUMED",), _single(gaps))


def _left_out(found: Sequence[Plain]) -> Iterator[Table]:
    if found:
        rows = tuple((it["strategy"], it["why"]) for it in found)
        yield Table("Strategies that have no part in this", ("STRATEGY", "WHY"), rows)


def _moves(plan: Plain) -> Table:
    rows = tuple(
        (it["namespace"], it["pod"], it["from"], it["to"] or "<anywhere>", it["strategy"], it["reason"])
        for it in plan["moves"]
    )
    if not rows:
        return Table("Nothing to move")
    return Table(f"Moves ({len(rows)})", ("NAMESPACE", "POD", "FROM", "TO", "STRATEGY", "WHY"), rows)


def _refusals(plan: Plain, *, verbose: bool, more: str) -> Iterator[Table]:
    refusals = plan["refusals"]
    if not refusals:
        return
    title = f"Refused ({len(refusals)})"
    if verbose:
        yield Table(title, ("NAMESPACE", "POD", "STRATEGY", "REASON", "WHY"), tuple(_each(refusals)))
        return
    examples: dict[str, tuple[str, str]] = {}
    for it in refusals:
        for why in it["reasons"]:
            examples.setdefault(why["code"], (f"{it['namespace']}/{it['pod']}", why["text"]))
    counts = plan["summary"]["refusalsByReason"]
    ordered = sorted(counts.items(), key=lambda it: (-it[1], it[0]))
    rows = tuple((code, str(count), *examples[code]) for code, count in ordered)
    yield Table(title, ("REASON", "PODS", "SUCH AS", "WHY"), rows, f"{more} lists each")


def _each(refusals: Sequence[Plain]) -> Iterator[tuple[str, ...]]:
    for it in refusals:
        yield from ((it["namespace"], it["pod"], it["strategy"], why["code"], why["text"]) for why in it["reasons"])


def _nodes(nodes: Sequence[Plain], *, verbose: bool, more: str) -> Table:
    fullest = sorted(nodes, key=lambda it: (-_number(it["loadBefore"]), it["name"]))[:SHOWN_NODES]
    shown = [it for it in nodes if verbose or it in fullest or it["loadBefore"] != it["loadAfter"]]
    rows = tuple((it["name"], it["capacity"], _load(it["loadBefore"]), _load(it["loadAfter"])) for it in shown)
    left = len(nodes) - len(shown)
    note = f"{left} more that are less full and do not change; {more} lists them" if left else ""
    return Table(f"Nodes ({len(nodes)})", ("NODE", "CAPACITY", "LOAD", "AFTER"), rows, note)


def _sentence(summary: Plain) -> str:
    """Who shows one namespace of a plan says which: proposals are counted in all of them."""
    moves, refusals, proposals = (_count(summary[f"{what}s"], what) for what in ("move", "refusal", "proposal"))
    namespace = summary.get("namespace")
    share = f" in namespace {namespace}, of {proposals} in all" if namespace else f" of {proposals}"
    parts = [
        f"{moves} and {refusals}{share}",
        f"highest load {_load(summary['highestLoadBefore'])} before and {_load(summary['highestLoadAfter'])} after",
    ]
    if summary["limitedBy"] is not None:
        parts.append(f"limited by {summary['limitedBy']['code']}: {summary['limitedBy']['text']}")
    return "; ".join(parts)


def of_pod(told: Plain, *, verbose: bool = True, more: str = "-v") -> Iterator[Table]:
    """An explanation as `explanation.of_pod` gives it. Not verbose: of the guards only those that object."""
    yield from _assumed(told["assumed"])
    yield from _left_out(told["leftOut"])
    where = f"on {told['node']}" if told["node"] else "without a node"
    owner = told["workload"] or "no workload"
    yield Table(f"Pod {told['namespace']}/{told['pod']} {where}, of {owner}")
    yield Table(_placement(told["placement"]))
    yield Table(_decision(told["plan"]))
    strategies = tuple((it["strategy"], str(it["weight"]), it["proposes"] or "-") for it in told["strategies"])
    yield Table("Strategies", ("STRATEGY", "WEIGHT", "PROPOSES TO MOVE IT BECAUSE"), strategies)
    yield _guards(told["guards"], verbose=verbose, more=more)
    if told["mistakes"]:
        rows = tuple((it["on"], it["text"]) for it in told["mistakes"])
        yield Table("Values that mean nothing", ("ON", "MISTAKE"), rows)
    yield Table("Nodes, as if it had left its place", ("NODE", "LOAD", "FITS", "WHY NOT"), tuple(_places(told)))


def _guards(guards: Sequence[Plain], *, verbose: bool, more: str) -> Table:
    shown = [it for it in guards if verbose or it["objection"]]
    rows = tuple((it["guard"], it["code"], ", ".join(it["against"]), it["objection"] or "passes") for it in shown)
    columns, passing = ("GUARD", "REASON", "HOLDS AGAINST", "ANSWER"), len(guards) - len(shown)
    if not rows:
        return Table(f"All {passing} guards let it pass")
    return Table("Guards", columns, rows, f"{passing} more let it pass; {more} lists them" if passing else "")


def _placement(told: Plain) -> str:
    """Its tier only where somebody has given it one: most pods are of none."""
    parts = [
        f"{PLACEMENT[key]} {it['value']}, {_said(it)}"
        for key, it in told.items()
        if key != "tier" or it["level"] != "settings"
    ]
    return f"Placement: {'; '.join(parts)}"


def _said(it: Plain) -> str:
    if it["level"] == "settings":
        return f"by default ({it['key']} of the settings)"
    return f"by {it['key']} on {it['on']}"


def _decision(plan: Plain) -> str:
    match plan["decision"]:
        case "move":
            return f"The plan moves it to {plan['to'] or 'any node'} ({plan['strategy']}): {plan['reason']}"
        case "refuse":
            why = "; ".join(f"{it['code']}: {it['text']}" for it in plan["reasons"])
            return f"The plan leaves it where it is, though {plan['strategy']} would move it: {why}"
        case _:
            return "The plan leaves it where it is: nothing came to ask for it"


def _places(told: Plain) -> Iterator[tuple[str, ...]]:
    for it in told["nodes"]:
        name = f"{it['node']} (its own)" if it["own"] else it["node"]
        misfits = [f"{found['code']}: {found['text']}" for found in it["misfits"]] or ["-"]
        yield name, _load(it["load"]), "yes" if not it["misfits"] else "no", misfits[0]
        yield from (("", "", "", more) for more in misfits[1:])


def aligned(table: Table) -> str:
    """Columns as kubectl prints them: two blanks apart, no lines, the last one as long as it is."""
    lines = [clean(table.title) + (":" if table.rows else "")]
    if table.rows:
        whole = [tuple(map(clean, row)) for row in (table.columns, *table.rows)]
        widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
        for row in whole:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  " + "  ".join(cells).rstrip())
    if table.note:
        lines.append(f"  ({clean(table.note)})")
    return "\n".join(lines) + "\n"


def clean(text: str) -> str:
    """Names and values come from whoever wrote the objects, and must not steer the terminal of who reads them."""
    return text if text.isprintable() else "".join(it if it.isprintable() else f"\\x{ord(it):02x}" for it in text)


def _single(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple((text,) for text in texts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _load(load: float | None) -> str:
    return "-" if load is None else f"{load:.1f} %"


def _number(load: float | None) -> float:
    return float("inf") if load is None else load
