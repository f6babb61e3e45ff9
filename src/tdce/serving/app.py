"""The HTTP API and the pages of the studio, as one app around one explainer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, Any

import pandas as pd
from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import tdce
from tdce._core import InputError, show
from tdce.datasets import Dialect
from tdce.explainer import Explainer
from tdce.methods import Question
from tdce.report import Speaker, load_catalogue
from tdce.serving import schemas
from tdce.serving.columns import try_columns
from tdce.serving.curves import score_curves
from tdce.serving.descriptions import column_wording, default_person, describe_column, describe_laws
from tdce.serving.examples import describe_api
from tdce.serving.i18n import page_words, request_language
from tdce.serving.jobs import RESULT_FILES, Jobs
from tdce.serving.json_rows import json_to_frame, values_to_json
from tdce.serving.lines import answer_to_json, make_speaker
from tdce.serving.middleware import HttpError, SecurityMiddleware, error_body, result_or_disconnect
from tdce.serving.people import People
from tdce.serving.prometheus import ServerMetrics
from tdce.serving.queue import ExplainQueue, QueueFullError
from tdce.serving.settings import ServerSettings
from tdce.serving.walk import reverse_walk
from tdce.serving.what_if import what_if

MAX_RULES = 100
API_DESCRIPTION = "Counterfactual explanations for tables: what would have to be different for a yes."
PAGES = {"/": "page.html", "/docs": "docs.html"}
STATIC_FOLDER = files("tdce.serving").joinpath("static")
ERROR_DESCRIPTIONS = {
    400: "Not an HTTP request, in plain text: the web server answers it, not this application",
    401: "Missing or wrong token",
    403: "Request from another site",
    404: "Not found",
    408: "The body did not arrive in time",
    409: "Not possible in the present state of the job",
    413: "Too large",
    415: "Unsupported content type",
    421: "Unknown host name",
    422: "Invalid input; `detail` is the error message of Python",
    429: "Too many requests from one client",
    503: "Too busy, or no answer in time",
}

Language = Annotated[str, Query(max_length=16, description="Language of the texts: en, de, de-CH")]
JobId = Annotated[str, Path(max_length=64)]


def make_app(
    explainer: Explainer,
    settings: ServerSettings | None = None,
    rows: pd.DataFrame | None = None,
    id_column: str | None = None,
) -> SecurityMiddleware:
    """The app of a server: `explainer` answers, `rows` are the people whom the studio shows, named by `id_column`."""
    settings = settings or ServerSettings()
    metrics = ServerMetrics()
    api = FastAPI(
        title="tdce", version=tdce.__version__, description=API_DESCRIPTION, docs_url=None, redoc_url=None,
        lifespan=_lifespan, generate_unique_id_function=lambda route: route.name,
    )  # fmt: skip
    api.state.settings, api.state.metrics, api.state.explainer = settings, metrics, explainer
    api.state.people = People.of(explainer, rows, id_column)
    _add_error_handlers(api)
    _add_model_routes(api)
    _add_row_routes(api)
    _add_job_routes(api)
    api.mount("/static", StaticFiles(directory=str(STATIC_FOLDER)), name="static")
    api.openapi = cache(partial(describe_api, api, explainer))  # type: ignore[method-assign]
    return SecurityMiddleware(api, settings, metrics, lambda: api.state.queue.seconds_left())


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    """Queue and jobs live as long as the app; a first question is asked before anybody waits for it."""
    state = api.state
    limits = state.settings.limits
    state.queue = ExplainQueue(state.explainer, limits.queued_rows, state.metrics.count_batch)
    state.jobs = Jobs(state.explainer, state.queue, limits)
    state.light = ThreadPoolExecutor(2, "tdce-light")  # for what takes milliseconds
    state.metrics.gauge("tdce_rows_waiting", "Rows in the queue", lambda: state.queue.waiting)
    state.metrics.gauge("tdce_jobs", "Jobs that are kept", lambda: len(state.jobs))
    try:
        await asyncio.wrap_future(state.queue.run(lambda: _warm_up(state.explainer, state.people)))
        yield
    finally:
        state.jobs.close()
        state.queue.close()
        state.light.shutdown(wait=False, cancel_futures=True)


def _warm_up(explainer: Explainer, people: People) -> None:
    """Let the method compute now what it computes once."""
    refused = [values for values, met in zip(people.values, people.met, strict=True) if not met][:1]
    try:
        explainer.explain(json_to_frame(refused or people.values[:1], explainer.fitted.encoder))
    except InputError:  # no class is favourable, say: who asks gets the error
        return


def _add_error_handlers(api: FastAPI) -> None:
    """Every error is JSON with one text, `detail`."""

    @api.exception_handler(HttpError)
    async def refused(_: Request, error: HttpError) -> Response:
        return error.response()

    @api.exception_handler(InputError)
    async def wrong(_: Request, error: InputError) -> Response:
        return JSONResponse(error_body(str(error), error.case, error.facts), 422)

    @api.exception_handler(QueueFullError)
    async def full(_: Request, error: QueueFullError) -> Response:
        message = f"too many rows are waiting for an answer; try again in {error.seconds} seconds"
        return HttpError(503, message, error.seconds, "queue_full", seconds=error.seconds).response()

    @api.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return JSONResponse({"detail": _validation_message(error)}, 422)

    @api.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # bytes that are not text, or brackets a thousand deep
            return JSONResponse({"detail": "the body is not valid JSON"}, 422)
        return JSONResponse({"detail": error.detail}, error.status_code, error.headers)

    @api.exception_handler(ClientDisconnect)
    async def gone(_: Request, error: ClientDisconnect) -> Response:
        return HttpError(499, "the client has disconnected").response()

    @api.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return HttpError(500, "internal server error; the request was not answered", case="internal").response()


def _validation_message(error: RequestValidationError) -> str:
    """The first error of a validation, in one line."""
    wrong = error.errors()[0]
    name = ".".join(str(part) for part in wrong["loc"][1:])
    if wrong["type"] == "json_invalid":
        return f"the body is not valid JSON: {wrong.get('ctx', {}).get('error', '')}"
    if wrong["type"] == "extra_forbidden":
        return f"there is no argument {name!r}; /openapi.json lists the arguments"
    if wrong["type"] == "missing":
        return f"{name or 'the body'} is missing"
    return f"{name or 'the body'} is {show(wrong.get('input'))}: {wrong['msg']}"


def _error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route for OpenAPI: those of every route, and these."""
    found: dict[int | str, dict[str, Any]] = {
        code: {"model": schemas.ErrorBody, "description": ERROR_DESCRIPTIONS[code]}
        for code in (401, 403, 421, 422, 429, 503, *codes)
    }
    found[400] = {"description": ERROR_DESCRIPTIONS[400], "content": {"text/plain": {"schema": {"type": "string"}}}}
    return found


def _add_model_routes(api: FastAPI) -> None:
    """The pages, and what is known of explainer, table and server."""

    @api.get("/", include_in_schema=False)
    @api.get("/docs", include_in_schema=False)
    async def page(request: Request) -> Response:
        language = request_language(request)
        headers = {"Content-Language": language, "Vary": "Accept-Language, Cookie"}
        return HTMLResponse(_render_page(PAGES[request.url.path], language), headers=headers)

    @api.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return FileResponse(str(STATIC_FOLDER.joinpath("icon.svg")), media_type="image/svg+xml")

    @api.get("/words", response_model=schemas.WordsBody, responses=_error_responses())
    async def words(language: Language = "en") -> Any:
        """The texts of the pages in one language."""
        return page_words(language)

    @api.get("/health", response_model=schemas.HealthBody, responses=_error_responses())
    async def health(request: Request) -> Any:
        """Server status."""
        state = request.app.state
        return {"status": "ok", "version": tdce.__version__, "waiting": state.queue.waiting, "jobs": len(state.jobs)}

    @api.get("/metrics", responses=_error_responses() | {200: {"content": {"text/plain": {}}}}, response_class=Response)
    async def metrics(request: Request) -> Response:
        """Counters for Prometheus."""
        return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @api.get("/schema", responses=_error_responses(), response_model=dict[str, Any])
    async def schema(request: Request, language: Language = "en") -> Any:
        """The schema, as `explainer.schema.to_json()`, and the outputs of the model."""
        explainer = request.app.state.explainer
        return _describe_schema(explainer, make_speaker(explainer.schema, language, "analyst"))

    @api.get("/laws", response_model=schemas.LawsBody, responses=_error_responses())
    async def laws(request: Request) -> Any:
        """The laws discovered in the table, and the rules written by the user."""
        schema = request.app.state.explainer.schema
        return {"laws": describe_laws(schema, schema.names), "rules": list(schema.rules)}

    @api.get("/report", responses=_error_responses(), response_model=dict[str, Any])
    async def report(request: Request) -> Any:
        """The quality of the model, as in `explainer.report`, and hints about the columns."""
        explainer = request.app.state.explainer
        return explainer.report | {"hints": list(explainer.hints), "people": len(request.app.state.people)}

    @api.get("/people", response_model=schemas.PeopleBody, responses=_error_responses())
    async def people(
        request: Request,
        first: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
        count: Annotated[int, Query(ge=1, le=200)] = 50,
        met: Annotated[bool | None, Query(description="Only those whom the model decides favourably, or not")] = None,
        search: Annotated[str, Query(max_length=200, description="A text in their id, number or values")] = "",
        sort: Annotated[str, Query(max_length=200, description="score, or the name of a column")] = "",
        descending: bool = False,
        language: Language = "en",
    ) -> Any:
        """A page of the people whom the studio shows."""
        speaker = make_speaker(request.app.state.explainer.schema, language, "analyst")
        everyone = request.app.state.people
        return await _run_light(request, lambda: everyone.page(first, count, met, search, sort, descending, speaker))

    @api.get("/people/{number}", response_model=schemas.PersonBody, responses=_error_responses(404))
    async def person(request: Request, number: Annotated[int, Path(ge=0, le=1_000_000)]) -> Any:
        """One of the people whom the studio shows."""
        everyone = request.app.state.people
        if number >= len(everyone):
            raise HttpError(404, f"there is no person {number}; there are {len(everyone)}, counted from 0")
        return everyone.person(number)


@cache
def _render_page(name: str, language: str) -> str:
    """The HTML of the studio, or of the description of its API, in a language."""
    from jinja2 import Environment, StrictUndefined

    text = files("tdce.serving").joinpath(name).read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
    return template.render(language=language, t=load_catalogue(language).text)


def _describe_schema(explainer: Explainer, speaker: Speaker) -> dict[str, Any]:
    """The schema as JSON, with the model's outputs and the wording of the pages."""
    fitted, columns = explainer.fitted, list(explainer.schema)
    schema: dict[str, Any] = json.loads(explainer.schema.to_json())
    favourable = fitted.favourable
    outputs = [
        {"name": output.name, "classes": values_to_json(output.classes) if output.classes else None}
        for output in fitted.outputs
    ]
    plain = favourable if isinstance(favourable, str | bool | int | float | None) else str(favourable)
    method = explainer.chosen_method
    return schema | {
        "label": None if fitted.label is None else str(fitted.label),
        "favourable": plain,
        "outputs": outputs,
        "method": {"name": type(method).__name__, "closeness": getattr(method, "closeness", None),
                   "has_trade_off": method.has_tradeoff},
        "may_change": {str(column.name): column.may_change for column in columns},
        "described": {str(column.name): describe_column(column, speaker) for column in columns},
        "spoken": {str(column.name): column_wording(column, speaker) for column in columns},
        "usual": default_person(fitted.synthetic, columns),
        "said": {key: speaker.outcome_name(key) for key in explainer.schema.outcomes},
    }  # fmt: skip


def _add_row_routes(api: FastAPI) -> None:
    """Questions about rows in JSON."""

    @api.post("/predict", response_model=schemas.DecisionsBody, responses=_error_responses(408, 413, 415))
    async def predict(request: Request, body: schemas.PredictBody) -> Any:
        """The model's prediction for each row."""
        explainer = request.app.state.explainer
        return await _run_light(request, lambda: _predict(explainer, _read_rows(request, body.rows)))

    @api.post("/explain", response_model=schemas.LinesBody, responses=_error_responses(408, 413, 415))
    async def explain(request: Request, body: schemas.ExplainBody) -> Any:
        """What would have to be different, for one row or many."""
        state, question = request.app.state, _read_question(request, body)
        speaker = make_speaker(state.explainer.schema, body.language, body.audience)
        rows = _read_rows(request, body.rows, question.n)
        answer = await _await_result(request, state.queue.explain(rows, question))
        return {"lines": answer_to_json(answer, state.explainer.fitted.encoder, body.rows, speaker, body.audience)}

    @api.post("/check", response_model=schemas.CheckedBody, responses=_error_responses(408, 413, 415))
    async def check(request: Request, body: schemas.CheckBody) -> Any:
        """Check a row that was changed by hand as an answer would be checked."""
        explainer = request.app.state.explainer
        row, other = (_read_rows(request, [each]) for each in (body.row, body.values))
        question = _read_question(request, body)
        wording = {"audience": body.audience, "language": body.language}
        return await _run_light(request, lambda: what_if(explainer, row, other, question, **wording))

    @api.post("/curves", response_model=schemas.ScoreCurvesBody, responses=_error_responses(408, 413, 415))
    async def curves(request: Request, body: schemas.CurvesBody) -> Any:
        """The score along each column, if this value alone were another one."""
        explainer, values = request.app.state.explainer, _read_rows(request, [body.values])
        question = _read_question(request, body)
        return await _run_light(request, lambda: score_curves(explainer, values, question, body.audience))

    @api.post("/columns", response_model=schemas.TriedBody, responses=_error_responses(408, 413, 415))
    async def columns(request: Request, body: schemas.ColumnsBody) -> Any:
        """The answers if some columns had other settings, or some laws were off; nothing is changed on the server."""
        state, question = request.app.state, _read_question(request, body)
        make_speaker(state.explainer.schema, body.language, body.audience)  # an error before any work
        lines = len(_read_rows(request, body.rows, question.n))
        asked = body.columns, body.rows, question, body.audience, body.language, body.laws
        return await _await_result(request, state.queue.run(lambda: try_columns(state.explainer, *asked), lines))

    @api.post("/walk", response_model=schemas.WalkedBody, responses=_error_responses(408, 413, 415))
    async def walk(request: Request, body: schemas.WalkBody) -> Any:
        """The reverse walk of the diffusion model for one row, frame by frame."""
        state, row = request.app.state, _read_rows(request, [body.row])
        question, catalogue = _read_question(request, body), load_catalogue(body.language)
        work = state.queue.run(lambda: reverse_walk(state.explainer, row, catalogue, question))
        return await _await_result(request, work)


def _read_question(request: Request, body: schemas.TargetBody) -> Question:
    """The question in a body. In JSON the name of a column is text, even of column 0."""
    names = {field.name for field in fields(Question)}
    given = {name: getattr(body, name) for name in type(body).model_fields if name in names}
    known = {str(name): name for name in request.app.state.explainer.schema.names}
    if isinstance(given["immutable"], list):
        given["immutable"] = [known.get(n, n) if isinstance(n, str) else n for n in given["immutable"]]
    if isinstance(given.get("costs"), dict):
        given["costs"] = {known.get(name, name): cost for name, cost in given["costs"].items()}
    if isinstance(given["rules"], list) and len(given["rules"]) > MAX_RULES:
        raise InputError(f"there are {len(given['rules'])} rules; a question has at most {MAX_RULES}")
    question = Question(**given)
    if isinstance(body, schemas.QuestionBody):
        request.app.state.explainer.check(question)
    return question


def _read_rows(request: Request, rows: Any, n: Any = 1) -> pd.DataFrame:
    """The rows of a body as a frame, if their number and the options of each do not exceed the limit."""
    limit = request.app.state.settings.limits.rows
    lines = len(rows) * (n if isinstance(n, int) and n > 0 else 1) if isinstance(rows, list) else 0
    if lines > limit:
        message = f"{len(rows):,} rows with n={n} are more than {limit:,} lines; send a file to /jobs"
        raise HttpError(413, message, case="too_many_lines", rows=len(rows), options=n)
    return json_to_frame(rows, request.app.state.explainer.fitted.encoder)


def _predict(explainer: Explainer, rows: pd.DataFrame) -> dict[str, Any]:
    """What `Explainer.predict` and `predict_proba` return; the model is queried once."""
    fitted = explainer.fitted
    labels, probabilities = fitted.predict(fitted.encoder.read(rows))
    chances: list[Any] = [None] * len(rows)
    if probabilities is not None:
        names = [str(name) for name in fitted.classes]
        chances = [dict(zip(names, each, strict=True)) for each in probabilities.tolist()]
    return {
        "decisions": [
            {"row": i, "prediction": label, "probabilities": chance}
            for i, (label, chance) in enumerate(zip(values_to_json(labels), chances, strict=True))
        ]
    }


async def _run_light(request: Request, work: Callable[[], Any]) -> Any:
    """The result of work that takes milliseconds and need not wait in the queue."""
    return await _await_result(request, request.app.state.light.submit(work))


async def _await_result(request: Request, result: Future[Any]) -> Any:
    """The result, unless the client disconnects or the time runs out."""
    seconds = request.app.state.settings.limits.answer_seconds
    left = request.app.state.queue.seconds_left
    return await result_or_disconnect(request.receive, asyncio.wrap_future(result), result.cancel, seconds, left)


def _add_job_routes(api: FastAPI) -> None:
    """Questions about whole files."""

    @api.post("/jobs", response_model=schemas.JobBody, status_code=201, responses=_error_responses(408, 413, 415))
    async def new_job(request: Request, body: schemas.NewJobBody) -> Any:
        """Create a job: a question about a file, which is then PUT to /jobs/{id}/rows."""
        state, question, dialect = request.app.state, _read_question(request, body), Dialect(body.sep, body.decimal)
        await _run_light(request, lambda: state.jobs.check(question))
        return state.jobs.new(question, dialect, load_catalogue(body.language).language, body.name).to_json()

    @api.put(
        "/jobs/{id}/rows",
        response_model=schemas.JobBody,
        status_code=202,
        responses=_error_responses(404, 408, 409, 413, 415),
    )
    async def rows_of_job(request: Request, id: JobId) -> Any:
        """Send the file: .csv (text/csv), .csv.gz (application/gzip) or .parquet (application/vnd.apache.parquet)."""
        jobs = request.app.state.jobs
        job = jobs[id]
        await jobs.receive_rows(job, request.headers.get("content-type", "").split(";")[0].strip(), request.stream())
        return job.to_json()

    @api.get("/jobs/{id}", response_model=schemas.JobBody, responses=_error_responses(404))
    async def job(request: Request, id: JobId) -> Any:
        """Job status."""
        return request.app.state.jobs[id].to_json()

    @api.delete("/jobs/{id}", status_code=204, responses=_error_responses(404))
    async def delete_job(request: Request, id: JobId) -> Response:
        """Stop a job and delete all of its files."""
        jobs = request.app.state.jobs
        jobs.delete(jobs[id].id)
        return Response(status_code=204)

    @api.get("/jobs/{id}/{name}", response_class=FileResponse, responses=_error_responses(404, 409))
    async def file_of_job(request: Request, id: JobId, name: Annotated[str, Path(max_length=64)]) -> Response:
        """A result of a finished job: answer.csv (text that a spreadsheet would run as a formula begins with an
        apostrophe), answer.jsonl (everything as it is) or report.html."""
        job = request.app.state.jobs[id]
        if name not in RESULT_FILES:
            raise HttpError(404, f"there is no file {name!r}; there are {', '.join(RESULT_FILES)}")
        if name not in job.files:
            raise HttpError(409, f"{name} is not available: the job is {job.state}")
        job.is_fetched = True
        return FileResponse(str(job.folder / name), media_type=RESULT_FILES[name], filename=name)
