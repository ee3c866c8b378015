"""The server of the page with pictures from a stage instead of a cluster: `python -m ...staged KIND HOST:PORT`."""

import itertools
import sys
import threading

from flask import Flask

from console import arguments
from console.web import app, serve
from console.web.access import Access
from console.web.board import Board
from console.web.picture import Picture
from console.web.streams import Streams
from tests.unit.console.web import pictures

CHANGED = 50
"""Nodes that change from one picture of the large cluster to the next."""
SECONDS = 0.5


def later(before: Picture, at: int) -> Picture:
    """The same cluster a moment later: on some nodes one pod has made way for another."""
    nodes = dict(before.nodes)
    names = sorted(nodes)
    for name in names[at * CHANGED % len(names) :][:CHANGED]:
        tiles = [*nodes[name]["tiles"][1:], (f"shop/new-{at}-{name}", 3)]
        nodes[name] = {**nodes[name], "load": float(at % 100), "tiles": tiles}
    return pictures.picture(*nodes.values(), at=before.sample.at + SECONDS)


def main() -> None:
    """Serve it."""
    kind, listen = sys.argv[1:]
    board = Board()

    def compose() -> Flask:
        shown = pictures.hostile() if kind == "hostile" else pictures.large()
        board.hang(shown)
        if kind == "large":
            threading.Thread(target=_play, args=(board, shown), daemon=True).start()
        return app.create(board, Access(), Streams(serve.PAGES))

    serve.Server(compose, listen=arguments.address(listen), stop=board.close).run()


def _play(board: Board, shown: Picture) -> None:
    for at in itertools.count():
        threading.Event().wait(SECONDS)
        shown = later(shown, at)
        board.hang(shown)


if __name__ == "__main__":
    main()
