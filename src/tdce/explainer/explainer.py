"""`Explainer`, what a user holds: fit it to a table, ask it about rows, save it, load it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import pandas as pd
import torch

from tdce._core import (
    LAST_SEED,
    TAU_RANGE,
    WIDEST_LAYER,
    AnyFrame,
    AnySeries,
    FrameKind,
    InputError,
    Mode,
    Name,
    NotFittedError,
    Progress,
    as_pandas,
    check_choice,
    check_device,
    check_flag,
    check_integer,
    check_mapping,
    check_names,
    check_number,
    check_optional,
    check_path,
    check_sequence,
    check_table,
    check_texts,
    check_type,
    few_threads,
    html_card,
    is_name,
    listing,
    open_frame,
    place_networks,
    require_extra,
    show,
    suggest,
)
from tdce.diffusion import rate_plausibility
from tdce.explainer import artefact
from tdce.explainer.answer import Answer
from tdce.explainer.curve import score_curve
from tdce.explainer.digests import table_digest
from tdce.explainer.drift import Drift
from tdce.explainer.evaluation import evaluate
from tdce.explainer.fitted import Fitted
from tdce.explainer.fitting import fit
from tdce.explainer.inspection import inspect_saved
from tdce.explainer.monitoring import monitor
from tdce.explainer.plans import TrainingPlans, plan_for
from tdce.explainer.precedents import add_precedents
from tdce.explainer.provenance import Provenance, machine
from tdce.explainer.reason_source import ReasonSource
from tdce.explainer.segments import Segments, find_segments
from tdce.methods import (
    METHODS,
    Method,
    Question,
    explain,
    explain_conflicts,
    explain_robustly,
    method_name,
    setting_types,
    task_of,
)
from tdce.models import (
    AdaptedModel,
    Ensemble,
    Favourable,
    Model,
    ModelLike,
    Oracle,
    Target,
    Usage,
    adapt_models,
    describe_goal,
    ensemble_of_models,
    retrain_ensemble,
    score_kind,
)
from tdce.report import (
    OWN_MODEL,
    Context,
    Origin,
    Population,
    Speaker,
    accuracy_rows,
    outcome_names,
    score_thresholds,
)
from tdce.schema import FeasibleSet, Schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tdce.serving import Studio

ACCURACY = {
    "unseen": "accuracy {share:.1%} on {rows:,} unseen rows",
    "learned": "accuracy {share:.1%} on the {rows:,} rows that it learned",
    "given": "agrees with the label on {share:.1%} of {rows:,} rows, which it may have learned",
}
"""The accuracy in words, by the rows that it was measured on."""
TRADE_OFF = (
    "target",
    "immutable",
    "rules",
    "costs",
    "seed",
    "threshold",
    "safety",
)  # the arguments that `trade_off` and `segments` pass on to `explain`
MOST_ACTIONS = 100


class Explainer:
    """Counterfactual explanations for a table.

    `fit` learns the table: a diffusion model of its rows and, unless a `model` is given, a classifier of its label.
    `explain` then finds, for each row, what would have to change for the model to give the wanted decision.

    Parameters
    ----------
    method : str or Method, default "search"
        The name of a method in `tdce.methods.METHODS`, or a configured method, e.g. `Guided(start=0.6)`.
    model : optional
        The model to explain: a fitted estimator or pipeline with `predict_proba` or `predict`, a function of data
        frames, a torch module on encoded rows, the path of an ONNX file, the address of an endpoint, or a mapping of
        these for a decision with several outputs. Without one, `fit` trains a classifier.
    hidden : int, default 256
        Width of the layers of the classifier and of the diffusion model.
    tau : (float, float), default (0.5, 0.2)
        Temperature of the relaxed categories in the diffusion model, at the noisy and at the clean end.
    steps : int, default 1600
        Maximum number of training steps of the diffusion model; small tables get fewer.
    seed : int, default 0
        Seed for all training.
    keep_rows : bool, default False
        Whether `save` also writes the training rows. Without them an artefact holds nobody's record. `search` does not
        need them; a method that does says so.
    exact : bool, default False
        Whether to keep values shared by fewer than five people: the lowest and highest number of each column, fine
        quantiles, rare categories, synthetic rows equal to a real one. By default they are pooled (docs/privacy.md),
        and answers stay within the pooled ends.
    plans : TrainingPlans, optional
        How long each network is trained; the defaults suit nearly all tables.
    progress : {"auto", "bar", "lines", "silent"}, default "auto"
        "auto" shows a bar on a terminal and nothing elsewhere.
    device : str, default "cpu"
        Where the networks are trained and queried: "cpu", or "cuda" for a GPU that torch sees. The same row, options
        and seed give the same answer on the same device; a GPU may answer differently from a CPU.

    Examples
    --------
    >>> import tdce
    >>> data = tdce.load("german")
    >>> explainer = tdce.Explainer(hidden=32, steps=100)  # small networks, for a quick example
    >>> explainer = explainer.fit(data.frame, label=data.label, favourable="good")
    >>> refused = data.frame[explainer.predict(data.frame) == "bad"].head(2)
    >>> answer = explainer.explain(refused, immutable=["age"])
    >>> answer.to_frame()["status"].tolist()
    ['valid', 'valid']
    """

    fitted_: Fitted
    usage_: Usage  # queries of the model by `explain`
    _origin: Origin | None = None  # the file, if it was saved or loaded
    _file: tuple[artefact.Saved, str] | None = None  # what was last saved or loaded, and the file's sha256
    _known: tuple[artefact.Saved, Provenance] | None = None  # the cached provenance, and the state it describes

    def __init__(
        self,
        method: str | Method = "search",
        *,
        model: ModelLike | None = None,
        hidden: int = 256,
        tau: tuple[float, float] = (0.5, 0.2),
        steps: int = 1600,
        seed: int = 0,
        keep_rows: bool = False,
        exact: bool = False,
        plans: TrainingPlans | None = None,
        progress: Mode = "auto",
        device: str = "cpu",
    ) -> None:
        self.method = method
        self.model = model
        self.hidden = hidden
        self.tau = tau
        self.steps = steps
        self.seed = seed
        self.keep_rows = keep_rows
        self.exact = exact
        self.plans = plans
        self.progress = progress
        self.device = device

    def fit(
        self,
        frame: AnyFrame,
        *,
        label: Name | None = None,
        favourable: Favourable | None = None,
        schema: Schema | None = None,
        immutable: Iterable[Name] = (),
        learn: Iterable[Name] = (),
        categorical: Iterable[Name] = (),
        actionable: Iterable[Name] = (),
        causes: Any = None,
        columns: Sequence[Name] | None = None,
    ) -> Self:
        """Learn a table.

        Parameters
        ----------
        frame : data frame
            The table, one row per person, with the label column, from pandas, polars, pyarrow or any other library that
            narwhals reads; or an array, with its column names in `columns`. It is not modified.
        label : column name, optional
            The column that the classifier predicts. Optional if you bring your own model.
        favourable : optional
            The favourable label, e.g. "good"; for a model that predicts a number, a `Range`.
        schema : Schema, optional
            What is known about the columns; columns it does not name are passed through. Inferred if not given.
        immutable : list of column names, optional
            Features that never change in any answer.
        learn : list of column names, optional
            Row numbers and ids to learn all the same; without a schema they are passed through.
        categorical : list of column names, optional
            Columns whose numbers are codes.
        actionable : list of column names, optional
            Features that may change although they look unchangeable, e.g. age or past delays.
        causes : mapping or directed graph, optional
            The causes of some features, e.g. `{"income": ["education", "hours"]}`, or a networkx graph. These features
            then follow their causes, and the model decides on an answer with these consequences included.
        columns : list of column names, optional
            The column names, if the table is an array.

        Returns
        -------
        Explainer
            The explainer itself. `explainer.hints` lists what is worth knowing about the columns.

        Raises
        ------
        InputError
            If a setting, the table or the model is not usable; the message names the column, the value and the remedy.
        FloatingPointError
            If training diverges.
        """
        self._check_settings()
        table, kind = open_frame(frame, columns=check_optional("columns", columns, check_names))
        models = None if self.model is None else adapt_models(self.model)
        progress = Progress(self.progress)
        fitted = fit(
            table, label, favourable, schema, check_names("immutable", immutable), self.hidden, self._tau,
            self.steps, self.seed, self._plans, progress, learn, categorical, models, actionable, causes, self.exact,
            kind.library, check_device(self.device),
        )  # fmt: skip
        fitted = add_precedents(fitted, self._plans.precedents, self.seed, progress)
        self._set_fitted(fitted)
        return self

    def explain(
        self,
        rows: AnyFrame,
        *,
        target: Target | None = None,
        n: int = 1,
        immutable: Iterable[Name] = (),
        rules: Iterable[str] = (),
        costs: Mapping[Name, float] | None = None,
        seed: int = 0,
        closeness: float | None = None,
        threshold: float | None = None,
        safety: float | None = None,
        max_model_rows: int | None = None,
        robust: Ensemble | Sequence[Any] | None = None,
    ) -> Answer:
        """Find what would have to change in each row for the model to give the wanted decision.

        Parameters
        ----------
        rows : data frame
            The rows to explain, with the features that were learned. They are not modified.
        target : optional
            The wanted label (default: the favourable one, or the other of two classes), or a goal: `AtLeast("good",
            0.8)`, `Not("bad")`, `Between("good", 0.5, 0.7)`. For a predicted number: `Range(620, 680)`,
            `Range(high=8)`, `Change(500)`, `Change(share=-0.1)`. For a model with several outputs: a mapping,
            `{"approve": "yes", "rate": Range(high=8)}`. Or a list with one target per row.
        n : int, default 1
            Number of options per row, at most 100.
        immutable : list of column names, optional
            Features that must not change, in addition to those of the schema.
        rules : list of str, optional
            Constraints in addition to those of the schema: `["loan <= 5 * income", "at most 3 changes"]`.
        costs : mapping, optional
            Cost of changing a feature, if not 1: `{"purpose": 3, "phone": 0}`. Used by `search` and `guided`.
        seed : int, default 0
            Random seed; the same seed gives the same answer.
        closeness : float, optional
            The trade-off, from 0 (most plausible) to 1 (as close as possible). Default: the method's setting.
        threshold : float, optional
            Minimum probability to count as the target. Default: the target must be the most probable class.
        safety : float, optional
            Wanted probability that a retrained model accepts an answer, from 0 (no requirement) to 0.99; default 0.9.
            It is a forecast and not guaranteed: where it would cost too much, the column `safety` has what was reached.
        max_model_rows : int, optional
            Query budget: the maximum number of rows the model is queried for. Once it is spent, the best answers so far
            are returned.
        robust : Ensemble or list of models, optional
            Retrained models, nine in ten of which must accept an answer as well: what `retrain` returns, or models that
            you trained. Rows without such an answer get the usual one, and a note says so.

        Returns
        -------
        Answer
            One line per row and option, never fewer; its status is `valid`, `best_effort`, `already` or `infeasible`.

        Raises
        ------
        InputError
            If the question or a cell of the rows is not usable; the message gives the reason and the remedy.
        NotFittedError
            If the explainer has not been fitted.

        Examples
        --------
        >>> import tdce
        >>> data = tdce.load("german")
        >>> explainer = tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable="good")
        >>> refused = data.frame[explainer.predict(data.frame) == "bad"].head(1)
        >>> answer = explainer.explain(refused, n=2, immutable=["age"], rules=["duration_months >= 6"])
        >>> sorted(answer.changes().columns)
        ['after', 'before', 'feature', 'option', 'row']
        """
        ensemble = self._ensemble(robust)
        question = Question(
            target, n, check_names("immutable", immutable), check_texts("rules", rules), {} if costs is None else costs,
            seed, closeness, threshold, safety, max_model_rows, None if ensemble is None else ensemble.retraining,
        )  # fmt: skip
        self.check(question)
        return self.ask(rows, question, ensemble)

    def check(self, question: Question) -> None:
        """Check a question against this explainer, before any work.

        Parameters
        ----------
        question : Question
            The question to check.

        Raises
        ------
        InputError
            If the question is not usable, e.g. names an unknown feature, a rule that cannot be parsed, or a target that
            the model does not have.
        """
        check_type("question", question, Question, "it must be a Question")
        question.check(self.schema, self.fitted.outputs, self.fitted.favourable, self.chosen_method)

    @few_threads()
    def ask(self, rows: AnyFrame, question: Question, ensemble: Ensemble | None = None) -> Answer:
        """Answer a checked question: `explain` with its arguments as one object.

        Parameters
        ----------
        rows : data frame
            The rows to explain.
        question : Question
            The question; see `check`.
        ensemble : Ensemble, optional
            The retrained models that `question.robust` describes.

        Returns
        -------
        Answer
            Identical to the bit for the same row, explainer and question, in any process and whatever other rows are
            explained with it.
        """
        return self._answers(rows, question, ensemble)[0]

    @few_threads()
    def trade_off(
        self, rows: AnyFrame, *, closeness: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0), **question: Any
    ) -> dict[float, Answer]:
        """Explain rows at several positions of the trade-off at once, so that the answers are consistent.

        All positions choose from the same candidates: as closeness rises, no row's distance increases.

        Parameters
        ----------
        rows : data frame
            The rows to explain.
        closeness : list of float
            The positions, from 0 (most plausible) to 1 (as close as possible).
        **question
            Any other argument of `explain` except `n`, `max_model_rows` and `robust`.

        Returns
        -------
        dict
            One answer per position, with one option per row.

        Raises
        ------
        InputError
            As in `explain`, or if the method has no trade-off.

        Examples
        --------
        >>> import tdce
        >>> data = tdce.load("german")
        >>> explainer = tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable="good")
        >>> refused = data.frame[explainer.predict(data.frame) == "bad"].head(1)
        >>> near = explainer.trade_off(refused, closeness=[0.5, 1.0])
        >>> bool(near[1.0].explanation.distance[0, 0] <= near[0.5].explanation.distance[0, 0])
        True
        """
        for name in question:
            if name not in TRADE_OFF:
                raise InputError(
                    f"trade_off does not take {name}; {suggest(name, TRADE_OFF)}it takes: {listing(TRADE_OFF)}"
                )
        positions = check_sequence("closeness", closeness, None, check_number, 0, 1)
        if not positions:
            return {}
        asked = Question(closeness=positions[0], **question)
        self.check(asked)
        return dict(zip(positions, self._answers(rows, asked, along=tuple(positions)), strict=True))

    def segments(
        self,
        rows: AnyFrame | Answer,
        *,
        actions: int = 5,
        changes: int = 3,
        max_cost: float | None = None,
        **question: Any,
    ) -> Segments:
        """Find a few actions that help many people: the same changes for all of them.

        Actions are made from the changes in answers: set a category, bring a number to a value, change it by an amount
        or by a share. Each is tried on every person within their limits, laws and rules, and the model decides. The
        actions chosen are those that help most people and, among these, cost them least (docs/segments.md).

        Parameters
        ----------
        rows : data frame or Answer
            The people; or an answer about them, whose changes are then used.
        actions : int, default 5
            Maximum number of actions.
        changes : int, default 3
            Maximum number of features that an action changes.
        max_cost : float, optional
            The most that an action may cost a person, on the scale of an answer's distance; a costlier action does not
            help.
        **question
            Any other argument of `explain` except `n`, `max_model_rows` and `robust`; none if `rows` is an answer,
            which has its own question. An action helps only if its forecast safety reaches `safety`, here 0.75 by
            default.

        Returns
        -------
        Segments
            The actions, whom each helps, what it costs, and who is left, as frames of the rows' kind.

        Raises
        ------
        InputError
            As in `explain`.

        Examples
        --------
        >>> import tdce
        >>> data = tdce.load("german")
        >>> explainer = tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable="good")
        >>> refused = data.frame[explainer.predict(data.frame) == "bad"].head(10)
        >>> segments = explainer.segments(refused, actions=2)
        >>> segments.to_frame()["together"].is_monotonic_increasing
        True
        """
        for name in question:
            if name not in TRADE_OFF and name != "closeness":
                known = (*TRADE_OFF, "closeness")
                raise InputError(f"segments does not take {name}; {suggest(name, known)}it takes: {listing(known, 99)}")
        most, steps = check_integer("actions", actions, 1, MOST_ACTIONS), check_integer("changes", changes, 1, 10)
        cost = check_optional("max_cost", max_cost, check_number, 0, above=True)
        if isinstance(rows, Answer):
            if question:
                raise InputError(f"the answer has a question of its own; leave out {listing(list(question))}")
            if rows.features != self.schema.names:
                raise InputError("the answer is about other columns than this explainer; give the one that made it")
            return self._segments(rows, rows.question, most, steps, cost, rows.kind)
        people, kind = self._open(rows)
        asked = Question(**question)
        self.check(asked)
        return self._segments(people, asked, most, steps, cost, kind)

    @few_threads()
    def _segments(
        self,
        rows: pd.DataFrame | Answer,
        question: Question,
        actions: int,
        changes: int,
        max_cost: float | None,
        kind: FrameKind,
    ) -> Segments:
        return find_segments(self, rows, question, actions, changes, max_cost, kind)

    @few_threads()
    def plot_score(self, row: AnyFrame, feature: Name, *, target: Target | None = None) -> Figure:
        """Plot the score of one row along one feature, with the others unchanged, to show where the decision flips.

        The followers of the feature are recomputed.

        Parameters
        ----------
        row : data frame
            One row, e.g. `frame.loc[[label]]`.
        feature : column name
            The feature to vary.
        target : optional
            As in `explain`; default: the favourable class.

        Returns
        -------
        matplotlib.figure.Figure
            A curve for a number, bars for categories.
        """
        from tdce.report import curve_figure

        fitted = self.fitted
        person, _ = self._open(row)
        if len(person) != 1:
            raise InputError(f"row has {len(person)} rows; it must be a data frame of one row: frame.loc[[label]]")
        goals = fitted.resolve_goals(target, None, fitted.encoder.read(person))
        curve = score_curve(fitted, person, feature, goals)
        goal = goals.goal(0)
        label = Speaker.of(self.schema, audience="analyst").title(feature)
        thresholds = score_thresholds(goal, len(fitted.classes))
        return curve_figure(curve, label, thresholds, score_kind(goal) == "prediction")

    def studio(self, rows: AnyFrame | None = None, *, height: int = 720) -> Studio:
        """Open the studio inside a notebook, from a background server that only this machine can reach.

        Parameters
        ----------
        rows : data frame, optional
            People to choose from. Default: synthetic rows.
        height : int, default 720
            Height of the frame in the notebook, in pixels.

        Returns
        -------
        Studio
            The running studio, which a notebook displays. The server ends with `stop()` or with the process.
        """
        require_extra("explainer.studio()", "studio", "fastapi", "uvicorn", "prometheus_client")
        from tdce.serving import open_studio  # imported here, since only the studio needs it

        self.fitted  # noqa: B018  # raises now if there is nothing to show
        return open_studio(self, rows, check_integer("height", height, 100, 10_000))

    @few_threads()
    def retrain(self, table: AnyFrame, *, models: int = 10, seed: int = 1) -> Ensemble:
        """Retrain the model several times, for `explain(..., robust=...)`.

        Parameters
        ----------
        table : data frame
            The table with the label. Each model is trained on a bootstrap sample of its rows, with a seed of its own.
        models : int, default 10
            Number of models.
        seed : int, default 1
            Seed of the bootstrap samples and of the training.

        Returns
        -------
        Ensemble
            The retrained models. To be retrained, a model of your own must be an estimator with `fit`.
        """
        fitted, count, table = self.fitted, check_integer("models", models, 1, 1000), as_pandas(table)
        check_table(table)
        ensemble = retrain_ensemble(
            fitted.model, fitted.encoder, table, fitted.label, lambda: torch.from_numpy(fitted.class_numbers(table)),
            count, check_integer("seed", seed, 0, LAST_SEED - count), plan_for(self._plans.classifier, len(table)),
            Progress(self.progress),
        )  # fmt: skip
        digest = table_digest(self.schema, fitted.encoder.read(table), table[fitted.label])
        return replace(ensemble, retraining=replace(ensemble.retraining, table=digest))

    @few_threads()
    def evaluate(self, answer: Answer, table: AnyFrame | None = None, *, retrain: int = 0) -> dict[str, float]:
        """Evaluate an answer of this explainer by the paper's metrics and others (docs/metrics.md).

        The metrics are taken over the first option of every row that needed one: validity and violations over all of
        them, everything else over those that became valid.

        Parameters
        ----------
        answer : Answer
            What `explain` returned.
        table : data frame, optional
            Real rows with the label, to measure against. If it has as many rows as the learned table, it is taken to be
            that table, and the rows held out from training are identified. Without a table, the training rows of the
            explainer are used, or else its synthetic rows.
        retrain : int, default 0
            Number of models to retrain on the table, to measure the share of answers that they still accept.

        Returns
        -------
        dict of str to float
            The value of each metric. The first call trains three small autoencoders per target class.
        """
        check_type("answer", answer, Answer, "it must be the Answer that explain returned, not a frame of it")
        return evaluate(self, answer, None if table is None else as_pandas(table), retrain)

    @few_threads()
    def monitor(self, table: AnyFrame, *, label: Name | None = None) -> Drift:
        """Check a table for drift from the one that was learned (docs/monitor.md).

        The checks compare columns, missing cells, the range, middle and spread of numbers, shares of categories, laws,
        the distribution of plausibility and, with labels, the accuracy with what the explainer learned in `fit`.

        Parameters
        ----------
        table : data frame
            New rows with the features that were learned.
        label : column name, optional
            The column with their labels. Default: the label column of `fit`, if the table has it.

        Returns
        -------
        Drift
            All checks; `drift.changed` says whether any found a change.
        """
        if label is not None and not is_name(label):
            raise InputError(f"label is {show(label)}; it must be the name of a column")
        return monitor(self.fitted, table, label)

    def inspect(self) -> dict[str, Any]:
        """Describe what an artefact of this explainer holds, as values for JSON.

        Returns
        -------
        dict
            The number of learned rows, columns with their roles, laws and rules, the model and its accuracy, method,
            settings, versions, what is kept, and, if it was saved or loaded, the file with its size and digest.
        """
        return inspect_saved(self._saved(), self.provenance, self._origin)

    @few_threads()
    def plausibility(self, rows: AnyFrame, *, target: Target | None = None) -> AnySeries:
        """Rate how plausible rows are as members of the target class.

        Parameters
        ----------
        rows : data frame
            Rows with the features that were learned.
        target : optional
            As in `explain`; default: the favourable class.

        Returns
        -------
        series of float
            From 0 to 1, of the rows' kind and, in pandas, with their index: the share of real rows of the target class
            that the diffusion model finds less typical.

        Examples
        --------
        >>> import tdce
        >>> data = tdce.load("german")
        >>> explainer = tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable="good")
        >>> bool(explainer.plausibility(data.frame.head(3)).between(0, 1).all())
        True
        """
        fitted, (rows, kind) = self.fitted, self._open(rows)
        raw = fitted.encoder.read(rows)
        goals = fitted.resolve_goals(target, None, raw)
        target_class = goals.target_class(Oracle(fitted.model).score(raw))
        rated = rate_plausibility(fitted.encoder, fitted.diffusion, fitted.energy_quantiles, raw, target_class)
        return kind.series(pd.Series(rated, index=rows.index, name="plausibility"))

    @few_threads()
    def predict(self, rows: AnyFrame) -> AnySeries:
        """Predict with the explained model.

        Parameters
        ----------
        rows : data frame
            Rows with the features that were learned.

        Returns
        -------
        series
            The predicted class (of several outputs, the first) or number, of the rows' kind and, in pandas, with their
            index.
        """
        fitted, (rows, kind) = self.fitted, self._open(rows)
        labels = fitted.predict(fitted.encoder.read(rows)).labels
        return kind.series(pd.Series(labels, index=rows.index, name=fitted.outputs[0].name or fitted.label))

    @few_threads()
    def predict_proba(self, rows: AnyFrame) -> AnyFrame:
        """Predict probabilities with the explained model.

        Parameters
        ----------
        rows : data frame
            Rows with the features that were learned.

        Returns
        -------
        data frame
            One column per class, rounded to six decimals as in answers.
        """
        fitted, (rows, kind) = self.fitted, self._open(rows)
        probabilities = fitted.predict(fitted.encoder.read(rows)).probabilities
        if probabilities is None:
            raise InputError("the model predicts a number and no classes; use predict")
        return kind.frame(pd.DataFrame(probabilities, index=rows.index, columns=list(fitted.classes)))

    @few_threads()
    def population(self, table: AnyFrame | None = None) -> Population:
        """Count the people with each value, by predicted class, for `Answer.to_html`.

        Parameters
        ----------
        table : data frame, optional
            The people. Default: the training rows if they are kept (`keep_rows`), else synthetic rows.

        Returns
        -------
        Population
            A histogram per feature. For real people, only bins of at least five are counted.
        """
        fitted = self.fitted
        outcomes = outcome_names(fitted.outputs[0])
        if table is not None:
            raw = fitted.encoder.read(as_pandas(table))
            return Population.of(fitted.encoder, raw, Oracle(fitted.model).predict(raw).numpy(), outcomes, True)
        real = self.keep_rows and len(fitted.raw) > 0
        if (key := ("population", real)) not in fitted.memo:
            raw = fitted.raw if real else fitted.synthetic
            if fitted.classifier is not None:
                y = Oracle(fitted.model).predict(raw)
            else:  # what the user's model predicted in `fit`; here it may not be at hand
                scores = fitted.synthetic_scores
                y = fitted.y if scores is None or real else fitted.outputs[0].group(scores)
            fitted.memo[key] = Population.of(fitted.encoder, raw, y.numpy(), outcomes, real)
        population: Population = fitted.memo[key]
        return population

    def with_words(self, words: Mapping[Name, Any], outcomes: Mapping[str, Any] | None = None) -> Self:
        """Copy the explainer with other wording for columns and decisions; nothing is retrained.

        Parameters
        ----------
        words : mapping
            Wording by column, e.g. `{"income": {"label": "the pay"}}`; docs/language.md lists the keys.
        outcomes : mapping, optional
            Wording of the model's decisions, e.g. `{"good": {"en": "Approved"}}`.

        Returns
        -------
        Explainer
            A copy that uses this wording.
        """
        schema = self.schema
        for name, column_words in check_mapping("words", words, "columns to words").items():
            schema = schema.change(name, words=column_words)
        if outcomes is not None:
            schema = replace(schema, outcomes=outcomes)
        encoder, spoken = self.fitted.encoder, copy(self)
        columns = tuple(replace(each, column=column) for each, column in zip(encoder.columns, schema, strict=True))
        spoken.fitted_ = replace(self.fitted, encoder=replace(encoder, columns=columns, full_schema=schema))
        return spoken

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted explainer as an artefact: tensors and JSON under one checksum, no code.

        Parameters
        ----------
        path : str or path
            The file, NAME.tdce. It is written whole or not at all, without the training rows unless `keep_rows` is set.
        """
        saved, where = self._saved(), check_path("path", path)
        digest = artefact.save(where, saved)
        self._file, self._origin = (saved, digest), _origin(where, digest)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        progress: Mode = "auto",
        model: ModelLike | None = None,
        device: str = "cpu",
    ) -> Self:
        """Load an artefact that `save` wrote. Loading runs no code from it.

        Parameters
        ----------
        path : str or path
            The file, NAME.tdce. A damaged or altered file, or one of an unknown format, is refused.
        progress : {"auto", "bar", "lines", "silent"}, default "auto"
            As in `Explainer`.
        model : optional
            The model that the artefact was made for, if the explainer was given one; any other is refused.
        device : str, default "cpu"
            As in `Explainer`; files do not depend on the device.

        Returns
        -------
        Explainer
            A fitted explainer.
        """
        progress, device = check_choice("progress", progress, get_args(Mode)), check_device(device)
        where = check_path("path", path)
        saved, digest = artefact.load(where)
        explainer = cls(
            saved.method, model=model, hidden=saved.hidden, tau=saved.tau, steps=saved.steps, seed=saved.seed,
            keep_rows=saved.keep_rows, exact=saved.fitted.exact, progress=progress, device=device,
        )  # fmt: skip
        for network in (saved.fitted.classifier, saved.fitted.diffusion):
            place_networks(network, device)
        explainer._set_fitted(saved.fitted if model is None else saved.fitted.with_model(adapt_models(model)))
        explainer._file, explainer._origin = (explainer._saved(), digest), _origin(where, digest)
        return explainer

    @property
    def schema(self) -> Schema:
        """What is known about the columns: kinds, values, what may change, laws, rules and wording."""
        return self.fitted.encoder.schema

    @property
    def hints(self) -> tuple[str, ...]:
        """What is worth knowing about the columns, one sentence each; empty after `load`."""
        return self.fitted.hints

    @property
    def report(self) -> dict[str, Any]:
        """The quality of the model: rows, accuracy beside that of the most common class, calibration error, versions.

        `accuracy_rows` says what the accuracy was measured on: "unseen" rows, held out from training; "learned" rows,
        where the table is too small to hold any out; or "given", for a model that you brought, which may have been
        trained on these rows: then it is the agreement with the label. After `fit` the report also has the seconds that
        training took. `model_calls` and `model_rows` count how often `explain` queried the model.
        """
        usage = getattr(self, "usage_", Usage())
        report = self.fitted.report | {"accuracy_rows": accuracy_rows(self.fitted.report)}
        return report | {"model_calls": usage.calls, "model_rows": usage.rows}

    @property
    def provenance(self) -> Provenance:
        """Where answers come from: hashes of the artefact (or of what `save` would write), the model, the schema and
        the laws, the method with its settings, the versions and the machine."""
        saved = self._saved()
        if self._known is None or not self._known[0].alike(saved):
            self._known = saved, Provenance.of(self.fitted, saved.method, self._fingerprint(saved))
        return replace(self._known[1], machine=machine())  # a pickled explainer may now be on another machine

    @property
    def fitted(self) -> Fitted:
        """Everything that `fit` learned."""
        if not hasattr(self, "fitted_"):
            raise NotFittedError("this explainer is not fitted: call fit(frame, label=...) or Explainer.load(...)")
        return self.fitted_

    @property
    def chosen_method(self) -> Method:
        """The method with its settings."""
        method = self.method
        if isinstance(method, str):
            return METHODS[check_choice("method", method, METHODS)]()
        if isinstance(method, type) or not isinstance(method, Method):
            raise InputError(f"method is {show(method)}; it must be one of {listing(METHODS)}, or a method with "
                             "settings, e.g. DiffusionSearch(closeness=0.5)")  # fmt: skip
        return method

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the settings of the constructor, as scikit-learn does.

        Parameters
        ----------
        deep : bool, default True
            Ignored, for scikit-learn; the settings have no nested settings.

        Returns
        -------
        dict
            The value of each setting, by name.
        """
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Set settings of the constructor, as scikit-learn does; `fit` checks them.

        Parameters
        ----------
        **params
            New values by name.

        Returns
        -------
        Explainer
            The explainer itself.
        """
        known = _parameters(type(self))
        for name, value in params.items():
            if name not in known:
                meant = suggest(name, known)
                raise InputError(f"there is no setting {show(name)}; {meant}known: {listing(known, len(known))}")
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted explainer with the same settings; its `model` stays fitted."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        if not hasattr(self, "fitted_"):
            return f"<Explainer by {self.method!r}, not fitted>"
        fitted = self.fitted_
        about = f"{fitted.label!r} " if fitted.label is not None else ""
        outputs = "; ".join(
            listing(output.classes, most=4) if output.classes else "a number" for output in fitted.outputs
        )
        return (
            f"<Explainer by {self.method!r} of {about}({outputs}), "
            f"{len(fitted.encoder.schema)} features, {fitted.report['rows']:,} rows>"
        )

    def _repr_html_(self) -> str:
        """Show what was learned, and the columns, in a notebook."""
        if not hasattr(self, "fitted_"):
            return html_card(repr(self).strip("<>"), [], (), [])
        fitted = self.fitted_
        accuracy, usual = (fitted.report.get(key) for key in ("accuracy", "commonest_class"))
        facts = [f"wanted: {describe_goal(fitted.goal, fitted.labels)}" if fitted.goal is not None else ""]
        if accuracy is not None:
            said = ACCURACY[accuracy_rows(fitted.report)].format(share=accuracy, rows=fitted.report["test_rows"])
            facts.append(f"{said}; the most common class alone: {usual:.1%}")
        columns = ("column", "kind", "values", "may change")
        return html_card(repr(self).strip("<>"), facts, columns, self.schema.describe(), "explainer.schema")

    @property
    def _tau(self) -> tuple[float, float]:
        warm, cool = self.tau
        return warm, cool

    @property
    def _plans(self) -> TrainingPlans:
        return TrainingPlans() if self.plans is None else self.plans

    def _check_settings(self) -> None:
        """Raise an error that names the first invalid setting of the constructor."""
        _ = self.chosen_method
        check_integer("hidden", self.hidden, 1, WIDEST_LAYER)
        check_sequence("tau", self.tau, 2, check_number, *TAU_RANGE)
        check_integer("steps", self.steps, 1)
        check_integer("seed", self.seed, 0, LAST_SEED)
        check_flag("keep_rows", self.keep_rows)
        check_flag("exact", self.exact)
        check_choice("progress", self.progress, get_args(Mode))
        check_device(self.device)
        if not isinstance(self.plans, TrainingPlans | None):
            raise InputError(f"plans is {show(self.plans)}; it must be TrainingPlans(...)")

    def _answers(
        self, rows: AnyFrame, question: Question, ensemble: Ensemble | None = None, along: tuple[float, ...] = ()
    ) -> list[Answer]:
        """The answer to a question, or one for each position of the trade-off in `along`."""
        fitted, method, progress = self.fitted, self.chosen_method, Progress(self.progress)
        check_type("question", question, Question, "it must be a Question")
        check_optional("ensemble", ensemble, check_type, Ensemble, "it must be what Explainer.retrain returns")
        rows, kind = self._open(rows)
        question.check_budget(len(rows))
        feasible = FeasibleSet.of(fitted.encoder, rows, question.immutable, question.rules)
        task = fitted.task(feasible.immutable, question.max_model_rows, ensemble)
        goals = fitted.resolve_goals(question.target, question.threshold, feasible.own, task.oracle)
        effective = replace(question, immutable=feasible.immutable, costs={**self.schema.costs, **question.costs})
        ready = method.fit(task)
        if ensemble is None:
            explanation = explain(ready, feasible, goals, effective, progress, attribute=True, along=along)
        else:
            alone = method.fit(replace(task, oracle=task.oracle.without_ensemble()))
            explanation = explain_robustly(ready, alone, ensemble, feasible, goals, effective, progress)
        answers = []
        for i, closeness in enumerate(along or (question.closeness,)):
            asked = replace(effective, closeness=closeness)
            found = explanation.option(i) if along else explanation
            if question.max_model_rows is None:  # finding conflicts queries the model further
                found = explain_conflicts(ready, rows, feasible, goals, asked, found)
            answers.append((asked, found))
        usage, earlier = task_of(ready).oracle.usage, getattr(self, "usage_", Usage())
        self.usage_ = Usage(earlier.calls + usage.calls, earlier.rows + usage.rows)
        source = ReasonSource(fitted, task_of(ready).oracle.remaining)
        return [
            Answer.of(
                rows, feasible, goals, asked, found, fitted.labels, usage, self._context(), self.provenance,
                fitted.model, source, kind,
            )
            for asked, found in answers
        ]  # fmt: skip

    def _set_fitted(self, fitted: Fitted) -> None:
        self.fitted_, self.usage_ = fitted, Usage()
        self._origin = self._file = self._known = None

    def _open(self, rows: Any) -> tuple[pd.DataFrame, FrameKind]:
        """Rows as pandas, and their frame kind; the columns of an array are the features, in the schema's order."""
        return open_frame(rows, "rows", self.schema.names, "; for one row use frame.loc[[label]]")

    def _ensemble(self, robust: Any) -> Ensemble | None:
        if robust is None or isinstance(robust, Ensemble):
            return robust
        if not isinstance(robust, list | tuple):
            raise InputError(
                f"robust is {show(robust)}; it must be what Explainer.retrain returns, or a list of models"
            )
        return ensemble_of_models(self.fitted.model, self.fitted.encoder, robust)

    def _context(self) -> Context:
        fitted, method = self.fitted, self.chosen_method
        settings = {name: getattr(method, name) for name in setting_types(type(method))}
        return Context(
            _model_name(fitted.decides), "" if fitted.label is None else str(fitted.label), len(fitted.classes),
            method_name(method) or type(method).__name__, settings, fitted.report, self._origin, self.population(),
        )  # fmt: skip

    def _fingerprint(self, saved: artefact.Saved) -> str:
        if self._file is not None and self._file[0].alike(saved):
            return self._file[1]
        try:
            return artefact.fingerprint(saved)
        except InputError:  # the explainer cannot be saved, e.g. its method is not registered
            return ""

    def _saved(self) -> artefact.Saved:
        """What `save` writes."""
        method, keep_rows = self.chosen_method, check_flag("keep_rows", self.keep_rows)
        return artefact.Saved(self.fitted, method, self.hidden, self._tau, self.steps, self.seed, keep_rows)


def _parameters(kind: type) -> tuple[str, ...]:
    return tuple(name for name in inspect.signature(kind).parameters)


def _model_name(model: Model) -> str:
    """The model's name for people: a file without its folder, an endpoint without its address."""
    if not isinstance(model, AdaptedModel):
        return OWN_MODEL
    names = [(each.kind, "endpoint" if each.kind == "http" else Path(each.name).name) for each in model.models]
    return ", ".join(f"{name} ({kind})" for kind, name in names)


def _origin(path: Path, digest: str) -> Origin:
    stat = path.stat()
    written = datetime.fromtimestamp(stat.st_mtime, UTC)
    return Origin(path.name, digest, written.strftime("%Y-%m-%d %H:%M UTC"), stat.st_size)
