"""Put together what a service is made of."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing

from priorshift.errors import FileFormatError
from priorshift.service import inference, overview, questions, streams
from priorshift.service.app import Application, Service, Settings
from priorshift.service.engine import Limits
from priorshift.service.glances import Glances
from priorshift.service.models import Models
from priorshift.service.openapi import openapi
from priorshift.service.parts import opened_stream
from priorshift.service.sqlite import SQLite
from priorshift.service.store import Connection, Store

ROUTES = (*inference.ROUTES, *streams.ROUTES, *questions.ROUTES, *overview.ROUTES)
"""Every route of the service."""


def is_url(state: str) -> bool:
    """Whether the state is a PostgreSQL database, not a folder."""
    return state.startswith(("postgresql://", "postgres://"))


def open_store(state: str, alone: bool = True) -> Store:
    """The folder, or the database that a URL names."""
    if is_url(state):
        from priorshift.service.postgres import Postgres

        return Postgres(state)
    return SQLite(state, alone)


def make_app(options: argparse.Namespace, store: Store) -> Application:
    """The application that the options describe; the folder is looked at before."""
    try:
        models = Models.load(options.source)
        glances = Glances(models)
        problems = verify(models, store, glances)
        if problems:
            raise FileFormatError(problems[0])
        register(models, store)
        limits = Limits(
            answers=options.keep_answers, ids=options.keep_ids, streams=options.max_streams
        )
        settings = Settings(
            limits,
            options.max_body,
            options.max_rows,
            float(options.rate),
            metric_streams=options.metric_streams,
        )
        interface = openapi(ROUTES, list(models.by_key))
        service = Service(models, store, settings, glances, interface=interface)
        return Application(service, ROUTES)
    except BaseException:
        store.close()
        raise


def verify(models: Models, store: Store, glances: Glances | None = None) -> list[str]:
    """What is wrong with the state, in sentences; nothing is changed.

    ``glances`` take over what is seen of the streams on the way.
    """
    found = store.check()
    if found:
        return found
    with closing(store.connect()) as connection, connection.reading():
        return list(_other_sources(models, connection)) or list(
            _damage(models, connection, glances)
        )


def _other_sources(models: Models, connection: Connection) -> Iterator[str]:
    known, used = connection.models(), connection.used_models()
    for key, model in models.by_key.items():
        if key in used and known.get(key, model.digest) != model.digest:
            yield (
                f"the state was learned with another source than this {key}: serve that one, give "
                f"this one another version ({model.name}@VERSION=FILE), or another --state"
            )


def _damage(models: Models, connection: Connection, glances: Glances | None) -> Iterator[str]:
    after = ""
    while rows := connection.list_streams(after, 500):
        after = rows[-1].id
        for id in (row.id for row in rows):
            row = connection.find_stream(id)
            if row is not None and row.model in models.by_key:
                try:
                    found = opened_stream(models.by_key[row.model], row, connection)
                except FileFormatError as error:
                    yield f"the stream {id!r}: {error}"
                else:
                    if glances is not None:
                        glances.publish({id: found})
    try:
        for _ in connection.list_answers():
            pass
    except FileFormatError as error:
        yield str(error)


def register(models: Models, store: Store) -> None:
    """Remember what the models are, so that another under the same name is noticed."""
    with closing(store.connect()) as connection:
        known = connection.models()
        for key, model in models.by_key.items():
            if known.get(key) != model.digest:
                connection.put_model(key, model.digest)
