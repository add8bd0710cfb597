"""The Open Inference Protocol, v2: prediction for clients that know nothing of this library."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from priorshift import __version__
from priorshift.service.app import Service, Spec, answer
from priorshift.service.models import Answer, Input, Model
from priorshift.service.parts import Committed
from priorshift.service.problems import Problem
from priorshift.service.schemas import HEADER, InferAnswer, ServerAnswer
from priorshift.service.streams import check_id, check_rows, learned
from priorshift.service.tensors import (
    InferRequest,
    Wanted,
    datatype_of,
    read_request,
    write_answer,
)


async def live(service: Service, request: Request) -> Response:
    """The process is there."""
    return answer({"live": True})


async def ready(service: Service, request: Request) -> Response:
    """Batches are taken: not any more once the service is about to stop."""
    if service.stopping:
        raise Problem("busy", "the service is about to stop")
    return answer({"ready": True})


async def about_server(service: Service, request: Request) -> Response:
    """Name and version of the server, and the models: first that of streams which name none."""
    extensions = ["binary_tensor_data"]
    own = [key for key in service.models.by_key if key != service.models.default.key]
    return answer(
        ServerAnswer(
            name="priorshift",
            version=__version__,
            extensions=extensions,
            models=[service.models.default.key, *own],
        )
    )


def _model(service: Service, request: Request) -> Model:
    return service.models.find(request.path_params["name"], request.path_params.get("version"))


async def about_model(service: Service, request: Request) -> Response:
    """Inputs and outputs of a model, and the labels of its classes."""
    model = _model(service, request)
    source = model.deployment.source
    width = source.n_classes if model.takes == "probabilities" else source.n_features
    width = width if model.columns is None else len(model.columns)
    shape = [-1] if model.reads_single else [-1, width if width > 0 else -1]
    versions = [one.version for one in service.models.by_key.values() if one.name == model.name]
    return answer(
        {
            "name": model.name,
            "versions": versions,
            "platform": "priorshift",
            "inputs": [_tensor(model.takes, model.datatype, shape)],
            "outputs": [
                _tensor("labels", datatype_of(model.classes), [-1]),
                _tensor("probabilities", "FP64", [-1, source.n_classes]),
                _tensor("prior", "FP64", [source.n_classes]),
            ],
            "classes": model.classes,
            "columns": model.columns,
        }
    )


def _tensor(name: str, datatype: str, shape: list[int]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape}


async def model_ready(service: Service, request: Request) -> Response:
    """Whether a model is served."""
    model = _model(service, request)
    return answer({"name": model.name, "ready": not service.stopping})


async def infer(service: Service, request: Request) -> Response:
    """Predict; with the parameters ``stream`` and ``adapt`` also learn, under the request's id."""
    model = _model(service, request)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("bad_request", "compressed requests are not taken")
    body = await service.body(request)
    header = request.headers.get(HEADER)
    wanted, found = await service.read(body, _looked_at, service, model, header)
    if isinstance(found, Input):
        service.keys.check(request.headers.get("authorization"), "adapt")
        stream, batch_id = _named(wanted)
        found = await learned(service, stream, batch_id, found, model)
    data, headers = _written(model, wanted, found)
    return Response(data, headers=headers)


def _looked_at(
    service: Service, model: Model, header: str | None, body: bytes
) -> tuple[Wanted, Answer | Input]:
    """A request, and its answer where nothing is to be learned; else what is to be learned."""
    wanted = read_request(body, header)
    check_rows(service, wanted.rows)
    if wanted.request.parameters.get("adapt") is True:
        _named(wanted)
        return wanted, model.read(**_taken(model, wanted))
    stream = wanted.request.parameters.get("stream")
    return wanted, _predict(service, model, wanted, stream)


def _written(model: Model, wanted: Wanted, found: Answer) -> tuple[bytes, dict[str, str]]:
    stream = wanted.request.parameters.get("stream")
    about: dict[str, Any] = {
        "model_name": model.name,
        "model_version": model.version,
        "id": wanted.request.id,
    }
    tensors = {
        "labels": (datatype_of(model.classes), model.labels(found.proba)),
        "probabilities": ("FP64", found.proba),
        "prior": ("FP64", found.prior),
    }
    if stream is not None:
        about["parameters"] = {"stream": stream, "version": found.version}
    return write_answer(wanted, about, tensors)


def _named(wanted: Wanted) -> tuple[str, str]:
    """The stream that is to learn, and the id of the batch."""
    stream, batch_id = wanted.request.parameters.get("stream"), wanted.request.id
    if not isinstance(stream, str) or not batch_id:
        raise Problem(
            "invalid_input",
            "to adapt, name the parameter stream, and give the request an id: it is the batch's",
        )
    return check_id(stream), batch_id


def _taken(model: Model, wanted: Wanted) -> dict[str, Any]:
    """The tensor as rows or as probabilities; cells of text are read as those of a file are."""
    rows, parameters = wanted.rows, wanted.request.parameters
    names, typed = parameters.get("columns"), parameters.get("typed") is True
    if names is not None and not isinstance(names, list):
        raise Problem("invalid_input", "the parameter columns is a list of names")
    text = wanted.request.inputs[0].datatype == "BYTES"
    if names is None and text and model.columns is not None:
        names = list(map(str, model.columns))
    if names is None:
        return {model.takes: rows}
    if text:  # a single column comes as a list of texts
        rows = [row if isinstance(row, list) else [row] for row in rows]
        rows = [[cell or None for cell in row] for row in rows] if typed else rows
    else:
        rows = rows.tolist()
    return {model.takes: rows, "columns": names, "typed": typed}


def _predict(service: Service, model: Model, wanted: Wanted, stream: Any) -> Answer:
    version, state = 0, model.begun
    if stream is not None:
        if not isinstance(stream, str):
            raise Problem("invalid_input", "the parameter stream is the name of a stream")
        found: Committed = service.engine.committed(stream)
        if found.model is not model:
            raise Problem("invalid_input", f"the stream {stream!r} has the model {found.model.key}")
        version, state = found.row.version, found.stream
    deployment = model.deployment
    batch, _ = model.batch(**_taken(model, wanted))
    proba = deployment.predict_proba(state, batch)
    return Answer(version, proba, deployment.prior(state))


_MODEL, _VERSION = "/v2/models/{name}", "/v2/models/{name}/versions/{version}"
ROUTES = (
    Spec("GET", "/v2/health/live", None, live, "Whether the process is there"),
    Spec("GET", "/v2/health/ready", None, ready, "Whether batches are taken"),
    Spec(
        "GET",
        "/v2",
        "read",
        about_server,
        "Name and version of the server, and its models",
        None,
        ServerAnswer,
    ),
    *(
        spec
        for path in (_MODEL, _VERSION)
        for spec in (
            Spec("GET", path, "read", about_model, "Inputs, outputs and classes of a model"),
            Spec("GET", f"{path}/ready", "read", model_ready, "Whether a model is served"),
            Spec(
                "POST",
                f"{path}/infer",
                "predict",
                infer,
                "Predict; with stream and adapt, learn",
                InferRequest,
                InferAnswer,
            ),
        )
    ),
)
"""The routes of this module."""
