"""The bodies of requests and responses, with the names of Python.

The fields of a question take any JSON: `Question` checks them itself, so that a client reads its error messages. What
is documented is what it accepts.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from tdce.schema import SETTABLE

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
            "description": "Objects by column name, with every column of GET /schema; others are passed through",
        }
    ),
]
Names = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "string"}})]


def _optional_number(low: float, high: float, kind: str = "number") -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": kind, "minimum": low, "maximum": high}, {"type": "null"}]})


Audience = Annotated[
    Any,
    WithJsonSchema({"type": "string", "enum": ["program", "analyst", "applicant"]}),
    Field(
        description="Who reads the answer: a program gets all columns, people only those the schema allows to be named"
    ),
]
Language = Annotated[Any, WithJsonSchema({"type": "string"}), Field(description="Language of the texts: en, de, de-CH")]


class StrictBody(BaseModel):
    """A body in which an unknown name is an error."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class TargetBody(StrictBody):
    target: Annotated[
        Any,
        WithJsonSchema({"anyOf": [{"type": ["string", "number", "boolean", "object", "null"]}, {"type": "array"}]}),
        Field(description="The wanted label (default: the favourable one), or 'at least 620', '+500', 'not bad'; for "
                          "several outputs an object; or a list with one of these per row"),
    ] = None  # fmt: skip
    immutable: Annotated[Names, Field(description="Features that must not change, besides the schema's")] = ()
    rules: Annotated[Names, Field(description="Rules that must hold, besides the schema's")] = ()
    threshold: Annotated[
        Any, _optional_number(0, 1), Field(description="Minimum probability to count as the target")
    ] = None


class QuestionBody(TargetBody):
    n: Annotated[
        Any, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 100}), Field(description="Options per row")
    ] = 1
    costs: Annotated[
        Any,
        WithJsonSchema({"anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}]}),
        Field(description="Cost of changing a feature, by name; default 1"),
    ] = None
    seed: Annotated[
        Any, WithJsonSchema({"type": "integer", "minimum": 0}), Field(description="Same seed, same answer")
    ] = 0
    closeness: Annotated[
        Any, _optional_number(0, 1), Field(description="From 0 (typical of the target class) to 1 (nearest to the row)")
    ] = None
    safety: Annotated[
        Any,
        _optional_number(0, 0.99),
        Field(description="How likely a model trained again should accept an answer; 0: any answer will do"),
    ] = None
    max_model_rows: Annotated[
        Any,
        _optional_number(1, 1_000_000, "integer"),
        Field(description="Query budget: the maximum number of rows the model is queried for"),
    ] = None


class ExplainBody(QuestionBody):
    rows: Rows
    audience: Audience = "program"
    language: Language = "en"


EDIT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "role": {"type": "string", "enum": list(SETTABLE)},
        "immutable": {"type": "boolean"},
        "direction": {"type": "string", "enum": ["any", "increase", "decrease"]},
        "step": {"type": ["number", "null"], "exclusiveMinimum": 0},
        "cost": {"type": ["number", "null"], "minimum": 0, "maximum": 1000},
        "follows": {"type": "array", "items": {"type": "string"}},
    },
}

SWITCH_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["number", "on"],
    "additionalProperties": False,
    "properties": {"number": {"type": "integer", "minimum": 0}, "on": {"type": "boolean"}},
}


class ColumnsBody(ExplainBody):
    columns: Annotated[
        Any,
        WithJsonSchema({"type": "array", "items": EDIT_SCHEMA}),
        Field(description="Settings of columns instead of those fitted, applied in this order, as `Schema.change` "
                          "takes them; `step` null: any value, `cost` null: 1"),
    ] = ()  # fmt: skip
    laws: Annotated[
        Any,
        WithJsonSchema({"type": "array", "items": SWITCH_SCHEMA}),
        Field(description="Laws to switch off or on, by their numbers in GET /laws, after the settings of columns"),
    ] = ()


class NewJobBody(QuestionBody):
    sep: str = Field(",", description="The separator of cells in CSV files")
    decimal: str = Field(".", description="The decimal mark in CSV files")
    language: Annotated[Language, Field(description="Language of the report")] = "en"
    name: str = Field("", max_length=200, description="What the file is called, for whoever lists the jobs")


class PredictBody(StrictBody):
    rows: Rows


class CheckBody(TargetBody):
    row: Annotated[Row, Field(description="The row as it is")]
    values: Annotated[Row, Field(description="As it would be")]
    audience: Audience = "program"
    language: Language = "en"


class CurvesBody(TargetBody):
    values: Annotated[Row, Field(description="The row; each curve changes one of its values")]
    audience: Audience = "program"


class WalkBody(TargetBody):
    row: Row
    seed: Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 0})] = 0
    closeness: Annotated[Any, _optional_number(0, 1)] = None
    language: Language = "en"


class ErrorBody(BaseModel):
    detail: str = Field(description="What is wrong, and the way out")
    case: str = Field("", description="Which error it is, for who says it in other words; empty: only `detail` knows")
    facts: dict[str, Any] = Field({}, description="What the case is about: the column, the value, the limit")


class ChangeBody(BaseModel):
    feature: str
    before: Cell
    after: Cell
    words: str = Field(description="The change in words; empty if it may not be named")


class ReasonBody(BaseModel):
    feature: str
    loss: float | None = Field(description="Margin lost when the change is reverted, in log odds")
    words: str


class LineBody(BaseModel):
    row: int = Field(description="The row's position in the request")
    option: int
    status: str = Field(description="valid, best_effort, already or infeasible")
    target: Cell
    score_before: float
    score_after: float
    plausibility: float | None
    safety: float | None = Field(description="How likely a model trained again accepts it")
    distance: float = Field(description="The cost of all changes, which the search minimises")
    note: str
    values: dict[str, Cell] = Field(description="The counterfactual, with the columns that are passed through")
    changes: list[ChangeBody]
    unnamed: int = Field(description="Number of changes that may not be named to this audience")
    sentence: str
    letter: str
    typical: str = Field(description="Plausibility and safety in words")
    reasons: list[ReasonBody]


class LinesBody(BaseModel):
    lines: list[LineBody]


class ColumnBody(BaseModel):
    name: str
    described: str = Field(description="Its values, in words")
    role: str
    may_change: str = Field(description="yes, no, increase or decrease")
    direction: str | None = Field(description="Of numbers: any, increase or decrease")
    step: float | None
    cost: float
    follows: list[str] | None = Field(description="The columns that it follows by a law")
    may_follow: list[list[str]] = Field(description="Groups of columns that it follows or could follow")


class LawBody(BaseModel):
    number: int
    sentence: str = Field(description="The law with its rows, exceptions and strength")
    words: str = Field(description="The law alone")
    on: bool
    hard: bool = Field(description="Whether no answer may break it; breaking another one costs")
    support: int = Field(description="Rows of the table that could break it")
    exceptions: int = Field(description="Rows of the table that do")
    strength: float | None = Field(description="Of an equation: the share of the variance that it explains")
    columns: list[str]
    follower: str | None = Field(description="The column that follows the others, if one does")


class TriedBody(LinesBody):
    columns: list[ColumnBody]
    laws: list[LawBody]
    roles: list[str] = Field(description="Roles that a column can be given")
    edited_schema: str = Field(description="The schema with these settings, a file for `tdce fit --schema`")


class DecisionBody(BaseModel):
    row: int
    prediction: Cell
    probabilities: dict[str, float] | None = Field(description="By class; null if the model predicts a number")


class DecisionsBody(BaseModel):
    decisions: list[DecisionBody]


class LawsBody(BaseModel):
    laws: list[LawBody]
    rules: list[str]


class WordsBody(BaseModel):
    language: str
    locale: str = Field(description="Locale in which numbers are written")
    languages: dict[str, str] = Field(description="All languages, each with its own name")
    messages: dict[str, str | dict[str, str]] = Field(
        description="Messages with placeholders in braces; some by plural form"
    )


class HealthBody(BaseModel):
    status: str
    version: str
    waiting: int = Field(description="Rows in the queue")
    jobs: int


class PersonBody(BaseModel):
    number: int
    id: str | None = Field(description="The person's name in the rows, if a column of them holds names")
    values: dict[str, Cell]
    prediction: Cell
    score: float = Field(description="Probability of the favourable class, or the predicted number")
    met: bool = Field(description="Whether the model decides favourably")


class PeopleBody(BaseModel):
    source: str = Field(description="synthetic (drawn by the diffusion model, nobody's record) or rows (of a file)")
    total: int
    people: list[PersonBody]


class CheckedBody(BaseModel):
    score_before: float
    score_after: float
    met: bool
    prediction: Cell
    plausibility: float | None
    distance: float
    broken: list[str] = Field(description="Laws and rules that the values break, each a sentence")
    unusual: list[str] = Field(
        description="Laws with exceptions that the values break, and values that were never learned"
    )
    not_allowed: list[str] = Field(description="Values that no answer would have, each a sentence")
    changed: list[str]


class CurveBody(BaseModel):
    name: str
    values: list[Cell] = Field(description="Of a number from end to end, of a category all")
    score: list[float] = Field(description="The score with each value, all others as they are")
    met: list[bool] = Field(description="Whether the decision is the wanted one")
    own: int = Field(description="Which of them is the row's own value")


class ScoreCurvesBody(BaseModel):
    curves: list[CurveBody]


class FrameBody(BaseModel):
    t: int
    score: float
    plausibility: float | None
    values: dict[str, Cell]
    places: dict[str, float] = Field(description="Position of each feature: of a number the share of people below it, "
                                                 "of a category the weight of all others")  # fmt: skip


class WalkedBody(BaseModel):
    algorithm: str
    target: Cell
    frames: list[FrameBody]
    returned: FrameBody = Field(description="The end of the walk, on the grid of the data and within all constraints")
    met: bool


class JobBody(BaseModel):
    id: str
    name: str = Field(description="What the file is called")
    state: str = Field(description="waiting for rows, queued, running, done or failed")
    rows: int | None
    done: int = Field(description="Rows explained so far")
    counts: dict[str, int] = Field(description="Lines by status so far")
    people: dict[str, int] = Field(description="Rows by the best status of their options so far")
    words: str = Field(description="Why the job failed")
    case: str = Field(description="Which error it was, as in other errors")
    facts: dict[str, Any]
    files: list[str] = Field(description="Results that can be fetched when the job is done")
    seconds_left: int = Field(description="Until it is deleted; before that, a newer job takes its place if it is done "
                                          "with, that is, if a result was fetched or it failed")  # fmt: skip
