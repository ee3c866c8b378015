"""`python -m extender serve`: answer kube-scheduler until SIGTERM. Plain HTTP, or TLS with --cert and --key.

Exit codes: 0 ended by a signal, 1 settings or credentials cannot be used, 2 wrong usage.
"""

import signal

if __name__ == "__main__":  # an interrupt while the rest is loaded has nothing to clean up
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import sys

from serving import options as serve_options


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m extender", description="The scheduler extender of spotshift.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("serve", help="answer a scheduler until SIGTERM", description=__doc__)
    serve_options.add(command, port=8080, what="POST /filter and /prioritize", tls_needed=False)
    options = parser.parse_args(arguments)
    if (options.cert is None) != (options.key is None):
        parser.error("--cert and --key go together: both for TLS, neither for plain HTTP")
    from extender import serve

    return serve.run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
