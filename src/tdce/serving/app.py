"""The HTTP API and the pages of the studio, as one app around one explainer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import cache
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
from tdce.serving.descriptions import described, spoken, usual
from tdce.serving.i18n import request_language, words_of
from tdce.serving.jobs import FILES, Jobs
from tdce.serving.json_rows import frame_of
from tdce.serving.lines import cells_of, lines_of, speaker_of
from tdce.serving.middleware import HttpError, SecurityMiddleware, unless_gone
from tdce.serving.people import People
from tdce.serving.prometheus import ServerMetrics
from tdce.serving.queue import ExplainQueue, FullError
from tdce.serving.settings import ServerSettings
from tdce.serving.walk import reverse_walk
from tdce.serving.what_if import what_if

MOST_RULES = 100
ABOUT = "Counterfactual explanations for tables: what would have to be different for a yes."
STATIC = files("tdce.serving").joinpath("static")
WORDS = {
    401: "No token, or a wrong one",
    403: "From another site",
    404: "There is no such thing",
    408: "The body did not arrive in time",
    409: "Not now",
    413: "Too large",
    415: "Not a known kind of body",
    421: "The server is not known by this name",
    422: "What is wrong with the input, in the words of Python",
    429: "Too many requests of one client",
    503: "Too busy, or too slow",
}


Language = Annotated[str, Query(max_length=16, description="Of the words: en, de, de-CH")]


def app_of(
    explainer: Explainer, setting: ServerSettings | None = None, rows: pd.DataFrame | None = None
) -> SecurityMiddleware:
    """The app: `explainer` answers, `rows` are the people whom the studio shows."""
    setting = setting or ServerSettings()
    metrics = ServerMetrics()
    api = FastAPI(
        title="tdce", version=tdce.__version__, description=ABOUT, docs_url=None, redoc_url=None,
        lifespan=_life, generate_unique_id_function=lambda route: route.name,
    )  # fmt: skip
    api.state.setting, api.state.metrics, api.state.explainer = setting, metrics, explainer
    api.state.people = People.of(explainer, rows)
    _handlers(api)
    _about_the_model(api)
    _about_rows(api)
    _about_files(api)
    api.mount("/static", StaticFiles(directory=str(STATIC)), name="static")
    return SecurityMiddleware(api, setting, metrics)


@asynccontextmanager
async def _life(api: FastAPI) -> AsyncIterator[None]:
    """The desk and the jobs live as long as the app; the first question is asked before anybody waits for it."""
    state = api.state
    bounds = state.setting.bounds
    state.queue = ExplainQueue(state.explainer, bounds.waiting, state.metrics.explained)
    state.jobs = Jobs(state.explainer, state.queue, bounds)
    state.light = ThreadPoolExecutor(2, "tdce-light")  # for what takes milliseconds
    state.metrics.gauge("tdce_rows_waiting", "Rows in the queue", lambda: state.queue.waiting)
    state.metrics.gauge("tdce_jobs", "Jobs that are kept", lambda: len(state.jobs))
    try:
        await asyncio.wrap_future(state.queue.run(lambda: _warm(state.explainer, state.people)))
        yield
    finally:
        state.jobs.close()
        state.queue.close()
        state.light.shutdown(wait=False, cancel_futures=True)


def _warm(explainer: Explainer, people: People) -> None:
    """What the method measures once is measured now."""
    refused = [values for values, met in zip(people.values, people.met, strict=True) if not met][:1]
    try:
        explainer.explain(frame_of(refused or people.values[:1], explainer.fitted.encoder))
    except InputError:  # nothing is favourable, say: whoever asks is told
        return


def _handlers(api: FastAPI) -> None:
    """Every refusal is JSON with one text, `detail`."""

    @api.exception_handler(HttpError)
    async def refused(_: Request, error: HttpError) -> Response:
        return error.response()

    @api.exception_handler(InputError)
    async def wrong(_: Request, error: InputError) -> Response:
        return JSONResponse({"detail": str(error)}, 422)

    @api.exception_handler(FullError)
    async def full(_: Request, error: FullError) -> Response:
        return HttpError(503, "too many rows wait for an answer; try again in a few seconds", 5).response()

    @api.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return JSONResponse({"detail": _first(error)}, 422)

    @api.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # bytes that are no text, or brackets a thousand deep
            return JSONResponse({"detail": "the body is not valid JSON"}, 422)
        return JSONResponse({"detail": error.detail}, error.status_code, error.headers)

    @api.exception_handler(ClientDisconnect)
    async def gone(_: Request, error: ClientDisconnect) -> Response:
        return HttpError(499, "the client has gone").response()

    @api.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return HttpError(500, "something went wrong in the server; the request was not answered").response()


def _first(error: RequestValidationError) -> str:
    """The first thing that is wrong, in one line."""
    wrong = error.errors()[0]
    place = ".".join(str(part) for part in wrong["loc"][1:])
    if wrong["type"] == "json_invalid":
        return f"the body is not valid JSON: {wrong.get('ctx', {}).get('error', '')}"
    if wrong["type"] == "extra_forbidden":
        return f"there is no argument {place!r}; the known ones are in /openapi.json"
    if wrong["type"] == "missing":
        return f"{place or 'the body'} is missing"
    return f"{place or 'the body'} is {show(wrong.get('input'))}: {wrong['msg']}"


def _troubles(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {
        code: {"model": schemas.ErrorBody, "description": WORDS[code]}
        for code in (401, 403, 421, 422, 429, 503, *codes)
    }


def _about_the_model(api: FastAPI) -> None:
    @api.get("/", include_in_schema=False)
    async def studio(request: Request) -> Response:
        language = request_language(request)
        headers = {"Content-Language": language, "Vary": "Accept-Language, Cookie"}
        return HTMLResponse(_page(language), headers=headers)

    @api.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return FileResponse(str(STATIC.joinpath("icon.svg")), media_type="image/svg+xml")

    @api.get("/words", response_model=schemas.WordsBody, responses=_troubles())
    async def words(language: Language = "en") -> Any:
        """What the pages say, in one of the languages that there are."""
        return words_of(language)

    @api.get("/health", response_model=schemas.HealthBody, responses=_troubles())
    async def health(request: Request) -> Any:
        """Whether it answers."""
        state = request.app.state
        return {"status": "ok", "version": tdce.__version__, "waiting": state.queue.waiting, "jobs": len(state.jobs)}

    @api.get("/metrics", responses=_troubles() | {200: {"content": {"text/plain": {}}}}, response_class=Response)
    async def metrics(request: Request) -> Response:
        """Counts and times, for Prometheus."""
        return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @api.get("/schema", responses=_troubles(), response_model=dict[str, Any])
    async def schema(request: Request, language: Language = "en") -> Any:
        """What is known of each column, as `explainer.schema.to_json()`, and what the model says."""
        return _schema(request.app.state.explainer, speaker_of(request.app.state.explainer.schema, language, "analyst"))

    @api.get("/laws", response_model=schemas.LawsBody, responses=_troubles())
    async def laws(request: Request) -> Any:
        """What holds between the columns: found in the table, and given."""
        known = request.app.state.explainer.schema
        sentences = known.sentences()
        found = [
            {
                "number": i,
                "sentence": sentences[i],
                "on": law.on,
                "hard": law.hard,
                "columns": list(map(str, law.columns)),
            }
            for i, law in enumerate(known.laws)
        ]
        return {"laws": found, "rules": list(known.rules)}

    @api.get("/report", responses=_troubles(), response_model=dict[str, Any])
    async def report(request: Request) -> Any:
        """How good the model is, as `explainer.report` says, and what is worth knowing about the columns."""
        explainer = request.app.state.explainer
        return explainer.report | {"hints": list(explainer.hints), "people": len(request.app.state.people)}

    @api.get("/people", response_model=schemas.PeopleBody, responses=_troubles())
    async def people(
        request: Request,
        first: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
        count: Annotated[int, Query(ge=1, le=200)] = 50,
        met: bool | None = None,
    ) -> Any:
        """Some of the people whom the studio shows."""
        return request.app.state.people.page(first, count, met)

    @api.get("/people/{number}", response_model=schemas.PersonBody, responses=_troubles(404))
    async def person(request: Request, number: Annotated[int, Path(ge=0, le=1_000_000)]) -> Any:
        """One of them."""
        known = request.app.state.people
        if number >= len(known):
            raise HttpError(404, f"there is no person {number}; there are {len(known)}, counted from 0")
        return known.person(number)


@cache
def _page(language: str) -> str:
    from jinja2 import Environment, StrictUndefined

    text = files("tdce.serving").joinpath("page.html").read_text(encoding="utf-8")
    made = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
    return made.render(language=language, t=load_catalogue(language).text)


def _schema(explainer: Explainer, speaker: Speaker) -> dict[str, Any]:
    fitted, columns = explainer.fitted, list(explainer.schema)
    text: dict[str, Any] = json.loads(explainer.schema.to_json())
    favourable = fitted.favourable
    outputs = [
        {"name": output.name, "classes": cells_of(output.classes) if output.classes else None}
        for output in fitted.outputs
    ]
    plain = favourable if isinstance(favourable, str | bool | int | float | None) else str(favourable)
    method = explainer.chosen_method
    return text | {
        "label": None if fitted.label is None else str(fitted.label),
        "favourable": plain,
        "outputs": outputs,
        "method": {"name": type(method).__name__, "closeness": getattr(method, "closeness", None),
                   "has_trade_off": method.has_tradeoff},
        "may_change": {str(column.name): column.may_change for column in columns},
        "described": {str(column.name): described(column, speaker) for column in columns},
        "spoken": {str(column.name): spoken(column, speaker) for column in columns},
        "usual": usual(fitted.synthetic, columns),
        "said": {key: speaker.translate(said) for key, said in explainer.schema.outcomes.items()},
    }  # fmt: skip


def _about_rows(api: FastAPI) -> None:
    @api.post("/predict", response_model=schemas.DecisionsBody, responses=_troubles(408, 413, 415))
    async def predict(request: Request, body: schemas.PredictBody) -> Any:
        """What the model says about each row."""
        explainer = request.app.state.explainer
        return await _light(request, lambda: _predicted(explainer, _frame(request, body.rows)))

    @api.post("/explain", response_model=schemas.LinesBody, responses=_troubles(408, 413, 415))
    async def explain(request: Request, body: schemas.ExplainBody) -> Any:
        """What would have to be different, for one row or many."""
        state, question = request.app.state, _question(request, body)
        speaker = speaker_of(state.explainer.schema, body.language, body.audience)
        rows = _frame(request, body.rows, question.n)
        answer = await _answer(request, state.queue.explain(rows, question))
        return {"lines": lines_of(answer, state.explainer.fitted.encoder, body.rows, speaker, body.audience)}

    @api.post("/check", response_model=schemas.CheckedBody, responses=_troubles(408, 413, 415))
    async def check(request: Request, body: schemas.CheckBody) -> Any:
        """Why not this? A row changed by hand, judged as an answer would be."""
        explainer = request.app.state.explainer
        row, other = (_frame(request, [each]) for each in (body.row, body.values))
        question = _question(request, body)
        to = {"audience": body.audience, "language": body.language}
        return await _light(request, lambda: what_if(explainer, row, other, question, **to))

    @api.post("/walk", response_model=schemas.WalkedBody, responses=_troubles(408, 413, 415))
    async def walk(request: Request, body: schemas.WalkBody) -> Any:
        """The reverse walk of the diffusion model for one row, frame by frame."""
        state, row = request.app.state, _frame(request, [body.row])
        question, words = _question(request, body), load_catalogue(body.language)
        return await _answer(request, state.queue.run(lambda: reverse_walk(state.explainer, row, words, question)))


def _question(request: Request, body: schemas.TargetBody) -> Question:
    """The question of a body. In JSON the name of a column is text, even of column 0."""
    names = {field.name for field in fields(Question)}
    given = {name: getattr(body, name) for name in type(body).model_fields if name in names}
    known = {str(name): name for name in request.app.state.explainer.schema.names}
    if isinstance(given["immutable"], list):
        given["immutable"] = [known.get(n, n) if isinstance(n, str) else n for n in given["immutable"]]
    if isinstance(given.get("costs"), dict):
        given["costs"] = {known.get(name, name): cost for name, cost in given["costs"].items()}
    if isinstance(given["rules"], list) and len(given["rules"]) > MOST_RULES:
        raise InputError(f"there are {len(given['rules'])} rules; at most {MOST_RULES} can be asked for at once")
    question = Question(**given)
    if isinstance(body, schemas.QuestionBody):
        request.app.state.explainer.check(question)
    return question


def _frame(request: Request, rows: Any, n: Any = 1) -> pd.DataFrame:
    most = request.app.state.setting.bounds.rows
    lines = len(rows) * (n if isinstance(n, int) and n > 0 else 1) if isinstance(rows, list) else 0
    if lines > most:
        raise HttpError(413, f"{len(rows):,} rows with n={n} are more than {most:,} lines; send a file to /jobs")
    return frame_of(rows, request.app.state.explainer.fitted.encoder)


def _predicted(explainer: Explainer, rows: pd.DataFrame) -> dict[str, Any]:
    """What `Explainer.predict` and `predict_proba` say; the model is queried once."""
    fitted = explainer.fitted
    labels, probabilities = fitted.predict(fitted.encoder.read(rows))
    chances: list[Any] = [None] * len(rows)
    if probabilities is not None:
        names = [str(name) for name in fitted.classes]
        chances = [dict(zip(names, each, strict=True)) for each in probabilities.tolist()]
    return {
        "decisions": [
            {"row": i, "prediction": label, "probabilities": chance}
            for i, (label, chance) in enumerate(zip(cells_of(labels), chances, strict=True))
        ]
    }


async def _light(request: Request, work: Callable[[], Any]) -> Any:
    """Work that need not wait for the desk."""
    return await _answer(request, request.app.state.light.submit(work))


async def _answer(request: Request, result: Future[Any]) -> Any:
    seconds = request.app.state.setting.bounds.seconds
    return await unless_gone(request.receive, asyncio.wrap_future(result), result.cancel, seconds)


JobId = Annotated[str, Path(max_length=64)]


def _about_files(api: FastAPI) -> None:
    @api.post("/jobs", response_model=schemas.JobBody, status_code=201, responses=_troubles(408, 413, 415))
    async def new_job(request: Request, body: schemas.NewJobBody) -> Any:
        """A question about a file; PUT the file to /jobs/{id}/rows."""
        state, question, dialect = request.app.state, _question(request, body), Dialect(body.sep, body.decimal)
        await _light(request, lambda: state.jobs.check(question))
        return state.jobs.new(question, dialect, load_catalogue(body.language).language).told()

    @api.put(
        "/jobs/{id}/rows", response_model=schemas.JobBody, status_code=202, responses=_troubles(404, 408, 409, 413, 415)
    )
    async def rows_of_job(request: Request, id: JobId) -> Any:
        """The file: .csv (text/csv), .csv.gz (application/gzip) or .parquet (application/vnd.apache.parquet)."""
        jobs = request.app.state.jobs
        job = jobs[id]
        await jobs.take(job, request.headers.get("content-type", "").split(";")[0].strip(), request.stream())
        return job.told()

    @api.get("/jobs/{id}", response_model=schemas.JobBody, responses=_troubles(404))
    async def job(request: Request, id: JobId) -> Any:
        """How far it is."""
        return request.app.state.jobs[id].told()

    @api.delete("/jobs/{id}", status_code=204, responses=_troubles(404))
    async def delete_job(request: Request, id: JobId) -> Response:
        """Stop it, and forget all of it."""
        jobs = request.app.state.jobs
        jobs.delete(jobs[id].id)
        return Response(status_code=204)

    @api.get("/jobs/{id}/{name}", response_class=FileResponse, responses=_troubles(404, 409))
    async def file_of_job(request: Request, id: JobId, name: Annotated[str, Path(max_length=64)]) -> Response:
        """answer.csv, answer.jsonl or report.html."""
        job = request.app.state.jobs[id]
        if name not in FILES:
            raise HttpError(404, f"there is no file {name!r}; there are {', '.join(FILES)}")
        if name not in job.files:
            raise HttpError(409, f"{name} is not there: the job is {job.state}")
        return FileResponse(str(job.folder / name), media_type=FILES[name], filename=name)
