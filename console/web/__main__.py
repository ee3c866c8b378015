"""`python -m console.web`: loads the program, which takes a moment, and runs it."""

import sys

from console import loading

if __name__ == "__main__":
    with loading.ended_by_an_interrupt():
        from console.web import program
    sys.exit(program.main())
