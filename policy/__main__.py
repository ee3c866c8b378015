"""`python -m policy`: print the page that documents the settings; `python -m policy FILE`: check a file.

Exit codes: 0 the file is fine (its effective settings are printed), 1 it has mistakes (all are printed).
`python -m policy --into PAGE` writes the short table of settings into a page that has its marks.
"""

import sys
from pathlib import Path

from policy import settings_doc, settings_load
from policy.mistakes import InvalidSettings


def main(arguments: list[str]) -> int:
    if not arguments:
        print(settings_doc.markdown(), end="")
        return 0
    if arguments[0] == "--into":
        for page in map(Path, arguments[1:]):
            page.write_text(settings_doc.renewed(page.read_text()))
        return 0
    try:
        print(settings_load.dump(settings_load.load(Path(arguments[0]).read_text())), end="")
    except OSError as unreadable:
        print(f"error: {arguments[0]}: {unreadable.strerror}", file=sys.stderr)
        return 1
    except UnicodeDecodeError:
        print(f"error: {arguments[0]}: not YAML text in UTF-8", file=sys.stderr)
        return 1
    except InvalidSettings as invalid:
        for mistake in invalid.mistakes:
            print(f"error: {mistake}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
