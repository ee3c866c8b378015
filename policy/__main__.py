"""`python -m policy FILE`: check a settings file; `python -m policy`: print the page that documents the settings.

`python -m policy --into PAGE` writes the short table of settings into a page that has its marks.
Exit codes: 0 the file is fine (its effective settings are printed), 1 it has mistakes (all are printed), 2 wrong
usage.
"""

import signal

if __name__ == "__main__":  # an interrupt while the rest is loaded has nothing to clean up
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from pathlib import Path

from policy import settings_doc, settings_load
from policy.mistakes import InvalidSettings
from policy.printing import printed


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            return printed(lambda: print(settings_doc.markdown(), end=""))
        case ["--into", *pages]:
            for page in map(Path, pages):
                page.write_text(settings_doc.renewed(page.read_text()))
        case ["-h" | "--help", *_]:
            return printed(lambda: print(__doc__, end=""))
        case [file]:
            return _check(file)
        case _:
            print("error: one FILE at a time, see --help", file=sys.stderr)
            return 2
    return 0


def _check(file: str) -> int:
    try:
        told = settings_load.dump(settings_load.load(Path(file).read_text()))
    except OSError as unreadable:
        print(f"error: {file}: {unreadable.strerror}", file=sys.stderr)
        return 1
    except UnicodeDecodeError:
        print(f"error: {file}: not YAML text in UTF-8", file=sys.stderr)
        return 1
    except InvalidSettings as invalid:
        for mistake in invalid.mistakes:
            print(f"error: {mistake}", file=sys.stderr)
        return 1
    return printed(lambda: print(told, end=""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
