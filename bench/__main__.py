"""`python -m bench [--smoke] [--json DIR]`: every benchmark, one after the other."""

import argparse
import sys
from pathlib import Path

from bench import decode, interruption, plan
from bench.extender import __main__ as extender
from bench.quality import __main__ as quality
from bench.webhook import __main__ as webhook

BENCHMARKS = {
    "decode": decode.main,
    "plan": plan.main,
    "quality": quality.main,
    "interruption": interruption.main,
    "webhook": webhook.main,
    "extender": extender.main,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="small sizes that only show that it works")
    parser.add_argument("--json", type=Path, metavar="DIR", help="also write the figures of each into this folder")
    asked = parser.parse_args()
    failed = False
    for name, run in BENCHMARKS.items():
        print(f"== {name} ==", flush=True)
        options = ["--smoke"] if asked.smoke else []
        if asked.json:
            asked.json.mkdir(parents=True, exist_ok=True)
            options += ["--json", str(asked.json / f"{name}.json")]
        failed |= run(options) != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
