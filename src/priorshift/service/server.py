"""Put together what a service is made of."""

from __future__ import annotations

import argparse

from starlette.applications import Starlette

from priorshift.errors import FileFormatError
from priorshift.service import inference, overview, questions, streams
from priorshift.service.app import Service, Settings, build
from priorshift.service.engine import Limits
from priorshift.service.models import Models
from priorshift.service.openapi import openapi
from priorshift.service.parts import opened_stream
from priorshift.service.sqlite import SQLite
from priorshift.service.store import Store

ROUTES = (*inference.ROUTES, *streams.ROUTES, *questions.ROUTES, *overview.ROUTES)
"""Every route of the service."""


def open_store(state: str, alone: bool = True) -> Store:
    """The folder, or the database that a URL names."""
    if state.startswith(("postgresql://", "postgres://")):
        from priorshift.service.postgres import Postgres

        return Postgres(state)
    return SQLite(state, alone)


def make_app(options: argparse.Namespace, store: Store) -> Starlette:
    """The application that the options describe; the folder is looked at before."""
    try:
        models = Models.load(options.source)
        problems = verify(models, store)
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
        service = Service(models, store, settings, interface=openapi(ROUTES, list(models.by_key)))
        return build(service, ROUTES)
    except BaseException:
        store.close()
        raise


def verify(models: Models, store: Store) -> list[str]:
    """What is wrong with the state, in sentences; nothing is changed."""
    found = store.check()
    if found:
        return found
    connection = store.connect()
    try:
        known = connection.models()
        for key, model in models.by_key.items():
            if known.get(key, model.digest) != model.digest and key in connection.used_models():
                return [
                    f"the state was learned with another source than this {key}: serve that one, "
                    f"give this one another version ({model.name}@VERSION=FILE), or another --state"
                ]
        after = ""
        while rows := connection.list_streams(after, 500):
            after = rows[-1].id
            for row in rows:
                if row.model in models.by_key:
                    whole = connection.find_stream(row.id)
                    if whole is None:
                        continue  # another process has deleted it
                    try:
                        opened_stream(models.by_key[row.model], whole, connection)
                    except FileFormatError as error:
                        found.append(f"the stream {row.id!r}: {error}")
        try:
            for _ in connection.list_answers():
                pass
        except FileFormatError as error:
            found.append(str(error))
        return found
    finally:
        connection.close()


def register(models: Models, store: Store) -> None:
    """Remember what the models are, so that another under the same name is noticed."""
    connection = store.connect()
    try:
        known = connection.models()
        for key, model in models.by_key.items():
            if known.get(key) != model.digest:
                connection.put_model(key, model.digest)
    finally:
        connection.close()
