"""What is sent and what comes back, with the names of Python.

The fields of a question take any JSON: `Explainer.explain` checks them itself, so that its words are the ones that a
client reads. What is documented is what it accepts.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

Cell = Annotated[Any, WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]
Row = Annotated[
    Any,
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}, "title": "Row"}
    ),
]
Rows = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
            "description": "Objects by column name, with every column of GET /schema; others are carried through",
        }
    ),
]
Names = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "string"}})]


def _number(low: float, high: float, kind: str = "number") -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": kind, "minimum": low, "maximum": high}, {"type": "null"}]})


Audience = Annotated[
    Any,
    WithJsonSchema({"type": "string", "enum": ["program", "analyst", "applicant"]}),
    Field(description="A program gets all columns; people only what the schema lets be named to them"),
]


Language = Annotated[Any, WithJsonSchema({"type": "string"}), Field(description="Of the words: en, de, de-CH")]


class StrictBody(BaseModel):
    """A name that is not known is a slip, and is named."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class TargetBody(StrictBody):
    target: Annotated[
        Any,
        WithJsonSchema({"anyOf": [{"type": ["string", "number", "boolean", "object", "null"]}, {"type": "array"}]}),
        Field(description="The wanted label (default: the favourable one), or 'at least 620', '+500', 'not bad'; for "
                          "several outputs an object; or a list with one of these per row"),
    ] = None  # fmt: skip
    immutable: Annotated[Names, Field(description="Features that must not change, besides the schema's")] = ()
    rules: Annotated[Names, Field(description="What must hold, besides the schema's rules")] = ()
    threshold: Annotated[Any, _number(0, 1), Field(description="Probability from which on it counts as a yes")] = None


class QuestionBody(TargetBody):
    n: Annotated[
        Any, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 100}), Field(description="Options per row")
    ] = 1
    costs: Annotated[
        Any,
        WithJsonSchema({"anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}]}),
        Field(description="What changing a feature costs, if not 1"),
    ] = None
    seed: Annotated[
        Any, WithJsonSchema({"type": "integer", "minimum": 0}), Field(description="Same seed, same answer")
    ] = 0
    closeness: Annotated[
        Any, _number(0, 1), Field(description="From 0 (typical of the target class) to 1 (nearest to the row)")
    ] = None
    max_model_rows: Annotated[
        Any, _number(1, 1_000_000, "integer"), Field(description="Ask the model about at most so many rows")
    ] = None


class ExplainBody(QuestionBody):
    rows: Rows
    audience: Audience = "program"
    language: Language = "en"


class NewJobBody(QuestionBody):
    sep: str = Field(",", description="The separator of cells in CSV files")
    decimal: str = Field(".", description="The decimal mark in CSV files")
    language: Annotated[Language, Field(description="Of the report")] = "en"


class PredictBody(StrictBody):
    rows: Rows


class CheckBody(TargetBody):
    row: Annotated[Row, Field(description="As it is")]
    values: Annotated[Row, Field(description="As it would be")]
    audience: Audience = "program"
    language: Language = "en"


class WalkBody(TargetBody):
    row: Row
    seed: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 0})] = 0
    closeness: Annotated[Any, _number(0, 1)] = None
    language: Language = "en"


class ErrorBody(BaseModel):
    detail: str = Field(description="What is wrong, and the way out")


class ChangeBody(BaseModel):
    feature: str
    before: Cell
    after: Cell
    words: str = Field(description="The change as people say it; nothing if it may not be named")


class ReasonBody(BaseModel):
    feature: str
    loss: float | None = Field(description="What giving the feature back would cost: log odds to the goal")
    words: str


class LineBody(BaseModel):
    row: int = Field(description="The row's position in the request")
    option: int
    status: str = Field(description="valid, best_effort, already or infeasible")
    target: Cell
    score_before: float
    score_after: float
    plausibility: float | None
    distance: float = Field(description="Between the encoded rows")
    note: str
    values: dict[str, Cell] = Field(description="The row as it would be, with the columns that are carried through")
    changes: list[ChangeBody]
    unnamed: int = Field(description="How many changes may not be named to this audience")
    sentence: str
    letter: str
    typical: str = Field(description="The plausibility in words")
    reasons: list[ReasonBody]


class LinesBody(BaseModel):
    lines: list[LineBody]


class DecisionBody(BaseModel):
    row: int
    prediction: Cell
    probabilities: dict[str, float] | None = Field(description="By class; null if the model predicts a number")


class DecisionsBody(BaseModel):
    decisions: list[DecisionBody]


class LawBody(BaseModel):
    number: int
    sentence: str
    on: bool
    hard: bool = Field(description="Whether no row of the table breaks it, so that no answer may")
    columns: list[str]


class LawsBody(BaseModel):
    laws: list[LawBody]
    rules: list[str]


class WordsBody(BaseModel):
    language: str
    locale: str = Field(description="Whose numbers are written")
    languages: dict[str, str] = Field(description="All that there are, by their own names")
    messages: dict[str, str | dict[str, str]] = Field(description="With places in braces; some by form of the plural")


class HealthBody(BaseModel):
    status: str
    version: str
    waiting: int = Field(description="Rows in the queue")
    jobs: int


class PersonBody(BaseModel):
    number: int
    values: dict[str, Cell]
    prediction: Cell
    score: float = Field(description="The probability of what is favourable, or the predicted number")
    met: bool = Field(description="Whether the model says what is favourable")


class PeopleBody(BaseModel):
    source: str = Field(description="synthetic (drawn by the diffusion model, nobody's record) or rows")
    total: int
    people: list[PersonBody]


class CheckedBody(BaseModel):
    score_before: float
    score_after: float
    met: bool
    prediction: Cell
    plausibility: float | None
    distance: float
    broken: list[str] = Field(description="Laws and rules that the change breaks, each a sentence")
    unusual: list[str] = Field(description="Laws with exceptions that it breaks, and values that were never learned")
    not_allowed: list[str] = Field(description="Values that no answer would have, each a sentence")
    changed: list[str]


class FrameBody(BaseModel):
    t: int
    score: float
    plausibility: float | None
    values: dict[str, Cell]
    places: dict[str, float] = Field(description="Where each feature is: of numbers the share of people below, of "
                                                 "categories the weight of others than the own")  # fmt: skip


class WalkedBody(BaseModel):
    algorithm: str
    target: Cell
    frames: list[FrameBody]
    returned: FrameBody = Field(description="The end of the walk, on the grid and within all limits")
    met: bool


class JobBody(BaseModel):
    id: str
    state: str = Field(description="waiting for rows, queued, running, done or failed")
    rows: int | None
    done: int = Field(description="Rows that are explained")
    counts: dict[str, int] = Field(description="Lines by status, so far")
    words: str = Field(description="Why it failed")
    files: list[str] = Field(description="What can be fetched when it is done")
