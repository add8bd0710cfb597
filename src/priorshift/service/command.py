"""``priorshift serve``: the command line of the service."""

from __future__ import annotations

import argparse
import asyncio
import gc
import ipaddress
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from priorshift._extras import need
from priorshift.cli.arguments import whole_number
from priorshift.errors import InputError
from priorshift.risk import compiled

_log = logging.getLogger("priorshift.service")
# Things made, less those gone, between two searches for garbage.
_GARBAGE = 20_000
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_DESCRIPTION = """\
Serve a source over HTTP: each stream learns from its batches, and nothing that was answered is
lost. The state is a folder (or a PostgreSQL database). Without API keys only this machine is
answered.
"""
_EPILOG = """\
examples:
  priorshift serve --source model.priorshift --state state
      on http://127.0.0.1:8750, with a page to look at
  priorshift serve --source returns=a.priorshift --source fraud=b.priorshift --state state
      two models; the first is that of streams that name none
  priorshift serve --state state --add-key on-call --scope read
      print a new key, and end; with keys, --host 0.0.0.0 is allowed
  priorshift serve --source model.priorshift --state state --check
      look for damage in the folder, also while it is served, and end
  priorshift serve --state state --backup copy.db
      copy the database, also while it is served, and end
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift serve`` its description and options.

    Examples
    --------
    >>> add_arguments(argparse.ArgumentParser())
    """
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add = parser.add_argument
    add("--source", action="append", default=[], metavar="[NAME[@VERSION]=]FILE",
        help="a file that LabelShiftClassifier.save wrote; may be given again")  # fmt: skip
    add("--state", default="priorshift-state", metavar="DIR",
        help="folder of the database, or a URL postgresql://...")  # fmt: skip
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=whole_number(0, 65535), default=8750, help="port; 0: any that is free")
    limits = parser.add_argument_group("limits")
    for name, usual, line in (
        ("--max-body", 16 << 20, "bytes of a request"),
        ("--max-rows", 10_000, "rows of a batch"),
        ("--max-streams", 10_000, "streams"),
        ("--keep-answers", 256, "answers of a stream that are kept, to be given again"),
        ("--keep-ids", 100_000, "batch ids of a stream that are kept"),
        ("--metric-streams", 100, "streams that have metrics of their own"),
    ):
        limits.add_argument(name, type=whole_number(), default=usual, metavar="N", help=line)
    limits.add_argument("--rate", type=whole_number(0), default=0, metavar="N",
        help="requests a second of one client; 0: any number")  # fmt: skip
    safe = parser.add_argument_group("keys and TLS")
    safe.add_argument("--add-key", metavar="NAME", help="print a new API key, and end")
    safe.add_argument("--scope", default="adapt", choices=("read", "predict", "adapt", "admin"),
        help="what the new key allows; each allows what those before it do")  # fmt: skip
    safe.add_argument("--remove-key", metavar="NAME", help="remove an API key, and end")
    safe.add_argument("--list-keys", action="store_true", help="names and scopes, and end")
    safe.add_argument("--tls-cert", metavar="FILE", help="certificate, in PEM")
    safe.add_argument("--tls-key", metavar="FILE", help="its private key")
    care = parser.add_argument_group("care")
    care.add_argument("--check", action="store_true", help="look for damage, and end")
    care.add_argument("--backup", metavar="FILE", help="copy the database, and end")
    care.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"),
        help="what is written to standard error")  # fmt: skip
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Do what the options say."""
    need("starlette", "uvicorn", "msgspec", "orjson", "prometheus_client")
    from priorshift.service import maintenance

    if options.backup is not None:
        maintenance.back_up(options.state, options.backup)
    elif (options.add_key, options.remove_key) != (None, None) or options.list_keys:
        maintenance.change_keys(options)
    elif options.check:
        maintenance.check(options)
    else:
        serve(options)


def serve(options: argparse.Namespace) -> None:
    """Serve until a signal ends it."""
    import uvicorn

    from priorshift.service import logs
    from priorshift.service.server import make_app, open_store

    logs.set_up(options.log_level)
    if not options.source:
        raise InputError("there is no source to serve: give --source FILE")
    app = make_app(options, open_store(options.state))
    service = app.state.service
    try:
        _check_exposure(options.host, service.keys.there_are)
        _check_tls(options.tls_cert, options.tls_key)
        config = uvicorn.Config(
            app,
            host=options.host,
            port=options.port,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=30,
            ssl_certfile=options.tls_cert,
            ssl_keyfile=options.tls_key,
        )
        server = _server(config, service)
        listener = _listener(options.host, options.port)
        # What is there by now stays: no search for garbage has to look at it, while all waits.
        # A request makes hundreds of lists, and no garbage that such a search would find.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        threading.Thread(target=_warm_up, args=[service.models], daemon=True).start()
        with listener, asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(server.serve(sockets=[listener]))
    except BaseException:
        service.close()
        raise


def _warm_up(models: Any) -> None:
    """Have ready what the first batches need, while requests are taken already."""
    start = time.perf_counter()
    with ExitStack() as told:
        if compiled.available():
            from priorshift.risk.compiled.warm import telling

            text = "compiling, once on a machine, up to a minute: the first batches may wait"
            told.enter_context(telling(lambda: _log.info(text)))
        for model in models.by_key.values():
            try:
                model.warm_up()
            except Exception:  # its first batch will say what is wrong, or take longer
                _log.exception("the model %s could not be warmed up", model.key)
    _log.info("warm after %.1f s", time.perf_counter() - start)


def _listener(host: str, port: int) -> socket.socket:
    """A socket on that address; uvicorn by itself would end the process with its own status."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind)
    except OSError as error:
        raise InputError(f"--host {host}: {error.strerror or error}") from error
    try:
        if os.name != "nt":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        reason = error.strerror or error
        raise InputError(f"cannot listen on {host}:{port} ({reason}): is it in use?") from error
    return found


def _check_exposure(host: str, keys: bool) -> None:
    if keys:
        return
    try:
        inside = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise InputError(
            f"--host {host} can be reached from other machines, and there are no API keys: make "
            "one with --add-key NAME, or listen on 127.0.0.1"
        )


def _check_tls(cert: str | None, key: str | None) -> None:
    """Refuse files that no TLS can be spoken with: uvicorn would not say which."""
    if key is not None and cert is None:
        raise InputError("--tls-key goes with --tls-cert: give the certificate, too")
    if cert is None:
        return
    import ssl

    for option, path in (("--tls-cert", cert), ("--tls-key", key)):
        if path is not None and not os.path.isfile(path):
            raise InputError(f"{option} {path}: there is no such file")
    given = f"--tls-cert {cert}" + ("" if key is None else f", --tls-key {key}")

    def password() -> str:  # nobody sits there to be asked
        raise InputError(f"{given}: the key is encrypted: give one without a password")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password)
    except OSError as error:  # of which SSLError is one
        if not isinstance(error, ssl.SSLError):
            raise InputError(f"{given}: cannot be read ({error.strerror or error})") from error
        raise InputError(
            f"{given}: hold no certificate with its key, both in PEM ({error}); a key in a file of "
            "its own needs --tls-key"
        ) from error


def _server(config: Any, service: Any) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """Ends with status 0 when it was asked to, after it has answered what it had taken."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            kind = "https" if config.is_ssl else "http"
            for listener in sockets or ():
                host, port = listener.getsockname()[:2]
                _log.info("ready on %s://%s:%d", kind, f"[{host}]" if ":" in host else host, port)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            def stop(number: int, frame: Any) -> None:
                service.stopping = True
                self.handle_exit(number, frame)

            before = {number: signal.signal(number, stop) for number in _SIGNALS}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    return Server(config)
