"""The pages: Flask knows nothing but the board and who may look. Every answer is to a GET and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from flask import Flask, Response, abort, redirect, render_template, request
from werkzeug.wrappers import Response as BaseResponse

from console.web.access import COOKIE, Access
from console.web.board import Board
from console.web.events import Sender, comment
from console.web.picture import TILES, Picture
from console.web.streams import Streams

HEARTBEAT_SECONDS: Final = 15.0
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def create(board: Board, access: Access, streams: Streams) -> Flask:
    """The application."""
    app = Flask(__name__)
    pages = _Pages(board, streams, app)
    app.before_request(lambda: _admit(access))
    app.after_request(_protect)
    for rule, view in (
        ("/", pages.page),
        ("/healthz", pages.health),
        ("/refusals/<code>", pages.refusals),
        ("/nodes/<name>", pages.node),
        ("/settings", pages.settings),
        ("/events", pages.events),
    ):
        app.add_url_rule(rule, view_func=view, methods=["GET"])
    return app


class _Pages:
    """What can be asked for."""

    def __init__(self, board: Board, streams: Streams, app: Flask) -> None:
        self._board = board
        self._streams = streams
        self._app = app

    def page(self) -> str:
        return render_template("page.html", tiles=TILES)

    def health(self) -> Response:
        known = self._board.latest is not None
        return Response("ok\n" if known else "not synced yet\n", 200 if known else 503, mimetype="text/plain")

    def refusals(self, code: str) -> str:
        return render_template("refused.html", code=code, pods=self._shown().refusals.get(code, ()))

    def node(self, name: str) -> str:
        found = self._shown().nodes.get(name)
        if found is None:
            abort(404, "there is no such node")
        return render_template("node.html", node=found, tiles=TILES)

    def settings(self) -> str:
        shown = self._shown()
        return render_template("settings.html", settings=shown.settings, source=shown.summary["settings"])

    def events(self) -> Response:
        if request.method == "HEAD":  # Flask answers it wherever it answers GET; nothing is streamed
            return _stream(())
        if not self._streams.enter():
            abort(503, "as many pages are open as this process can serve")
        answer = _stream(_sent(self._board, Sender(self._render)))
        answer.call_on_close(self._streams.leave)
        return answer

    def _render(self, part: str, picture: Picture) -> str:
        with self._app.app_context():
            return render_template(f"{part}.html", picture=picture)

    def _shown(self) -> Picture:
        latest = self._board.latest
        if latest is None:
            abort(503, "the cluster is not known yet")
        return latest.picture


def _admit(access: Access) -> BaseResponse | None:
    """Nothing if the request may go on."""
    if not access.knows_host(request.host):
        abort(421, "this name is not one of ours; --host names more")
    if request.path == "/healthz":
        return None
    asked = request.args.get("token", "")
    if asked and access.token and access.admits(asked):
        return _remember(asked)
    if not access.admits(access.presented(dict(request.headers), request.cookies)):
        abort(401, "a token is needed: open /?token=...")
    return None


def _protect(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.path.startswith("/static/vendor/"):
        response.headers["Cache-Control"] = "public, max-age=86400"
    return response


def _stream(sent: Iterable[bytes]) -> Response:
    return Response(sent, mimetype="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _sent(board: Board, sender: Sender) -> Iterator[bytes]:
    """Holds nothing that has to be given back: it may never be started, and then no `finally` of it would run."""
    number, first = 0, True
    yield b"retry: 1000\n\n"
    while not board.closed:
        hung = board.after(number, HEARTBEAT_SECONDS)
        if hung is None:
            yield comment()
            continue
        number = hung.number
        yield from sender.first(hung.picture, board.samples()) if first else sender.next(hung.picture)
        first = False


def _remember(token: str) -> BaseResponse:
    """The token leaves the address bar and stays in a cookie that no script can read."""
    answer = redirect("/")
    answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict", secure=request.is_secure)
    return answer
