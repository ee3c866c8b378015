"""`python -m telemetry docs`: write docs/logs.md and docs/metrics.md from the tables in the code."""

import sys
from pathlib import Path

from telemetry import catalogue, metrics


def main(arguments: list[str]) -> int:
    """Write the pages below the working directory."""
    if arguments != ["docs"]:
        print("usage: python -m telemetry docs", file=sys.stderr)
        return 2
    folder = Path("docs")
    folder.mkdir(exist_ok=True)
    (folder / "logs.md").write_text(catalogue.markdown(), encoding="utf-8")
    (folder / "metrics.md").write_text(metrics.markdown(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
