"""What a user holds: fit it to a table, ask it about rows, save it, load it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, get_args

import pandas as pd
import torch

from tdce._core import (
    LAST_SEED,
    TAU_RANGE,
    WIDEST_LAYER,
    InputError,
    Mode,
    Name,
    Progress,
    check_choice,
    check_flag,
    check_integer,
    check_names,
    check_number,
    check_optional,
    check_path,
    check_sequence,
    check_table,
    check_texts,
    listing,
    round_scores,
    show,
)
from tdce.explainer import artefact
from tdce.explainer.amortise import amortise
from tdce.explainer.answer import Answer
from tdce.explainer.digests import table_digest
from tdce.explainer.evaluation import evaluate
from tdce.explainer.fitting import CLASSIFIER, Fitted, fit, plan_for
from tdce.explainer.provenance import Provenance, machine
from tdce.methods import (
    METHODS,
    MOST_OPTIONS,
    DiffusionSearch,
    Method,
    Question,
    explain,
    explain_conflicts,
    explain_robustly,
    setting_types,
    task_of,
)
from tdce.models import (
    STANDOFF,
    AdaptedModel,
    Ensemble,
    Model,
    Oracle,
    adapt_models,
    ensemble_of_models,
    resolve_goals,
    retrain_ensemble,
    target_to_json,
)
from tdce.report import OWN, Context, Origin, Population, answers_of
from tdce.schema import FeasibleSet, Schema


class Explainer:
    """Counterfactual explanations for a table.

    >>> explainer = Explainer().fit(frame, label="risk", favourable="good")
    >>> answer = explainer.explain(refused, immutable=["age"])

    The classifier that is explained is trained by `fit`, unless a `model` is given: then `fit` learns the table only.

    - `model`: what decides: a trained estimator or pipeline with `predict_proba` or `predict`, a function of data
      frames, a torch module on encoded rows, the path of an ONNX file, the address of an endpoint, or a dictionary of
      these for a decision with several outputs. docs/models.md has an example of each.
    - `method`: a name in `tdce.methods.METHODS`, or a method with its own settings, e.g. `Guided(start=0.6)`.
    - `hidden`: width of the layers of the classifier and of the diffusion model.
    - `tau`: temperature of the diffusion model's relaxed categories, at the noisy end and at the clean end.
    - `steps`: the maximum number of training steps of the diffusion model; small tables get fewer.
    - `seed`: the seed of everything that is trained.
    - `keep_rows`: whether `save` writes the training rows too. Without them a saved file holds nobody's record; the
      method search needs none, and methods that do say so. Right after `fit` they are there either way.
    - `fast`: whether `fit` also trains a network that answers in one pass, for thousands of rows a second; whom it does
      not help is searched for as usual. It has learned answers of the method search to the usual question: one option for
      the favourable target at the method's closeness and costs; any other question is answered as usual.
    - `progress`: auto (a bar on a terminal, otherwise silent), bar, lines or silent.
    """

    def __init__(
        self,
        method: str | Method = "search",
        *,
        model: Any = None,
        hidden: int = 256,
        tau: tuple[float, float] = (0.5, 0.2),
        steps: int = 1600,
        seed: int = 0,
        keep_rows: bool = False,
        fast: bool = False,
        progress: Mode = "auto",
    ) -> None:
        self.method: str | Method = _known(method)
        self.models = None if model is None else adapt_models(model)
        self.hidden = check_integer("hidden", hidden, 1, WIDEST_LAYER)
        self.tau: tuple[float, float] = check_sequence("tau", tau, 2, check_number, *TAU_RANGE)
        self.steps = check_integer("steps", steps, 1)
        self.seed = check_integer("seed", seed, 0, LAST_SEED)
        self.keep_rows = check_flag("keep_rows", keep_rows)
        self.fast = check_flag("fast", fast)
        if self.fast and not isinstance(self.chosen_method, DiffusionSearch):
            raise InputError(f"fast goes with the method search, not with {show(method)}; leave one of them out")
        self.progress: Mode = check_choice("progress", progress, get_args(Mode))
        self.asked_ = (0, 0)  # calls of the model by `explain`, and rows
        self.origin_: Origin | None = None  # the file, if it was saved or loaded
        self.file_: tuple[artefact.Saved, str] | None = None  # what was saved or loaded last, and the file's sha256
        self.known_: tuple[artefact.Saved, Provenance] | None = None  # where answers come from

    def __repr__(self) -> str:
        method = repr(self.method)
        if not hasattr(self, "fitted_"):
            return f"<Explainer by {method}, not fitted>"
        fitted = self.fitted_
        about = f"{fitted.label!r} " if fitted.label is not None else ""
        said = "; ".join(listing(output.classes, most=4) if output.classes else "a number" for output in fitted.outputs)
        return (
            f"<Explainer by {method} of {about}({said}), "
            f"{len(fitted.encoder.schema)} features, {fitted.report['rows']:,} rows learned>"
        )

    def fit(
        self,
        frame: pd.DataFrame,
        label: Name | None = None,
        favourable: Any = None,
        schema: Schema | None = None,
        immutable: Iterable[Name] = (),
        learn: Iterable[Name] = (),
        categorical: Iterable[Name] = (),
    ) -> Self:
        """Learn the table: its columns, a classifier of `label`, a diffusion model of the rows, and synthetic people.

        With a model of your own no classifier is learned, and there need be no label.

        `favourable` is the label that people hope for; of a model that predicts a number a `Range`. `schema` replaces
        the one that would be inferred; columns that it does not name are ignored. `immutable` features never change in
        any explanation. Without a schema, row numbers and ids are carried through, not learned, unless `learn` names
        them; `categorical` names columns whose numbers are codes. `hints` has what is worth knowing about the columns.
        """
        if self.fast and favourable is None:
            raise InputError("fast needs to know what is favourable; name it (favourable='good'), or leave fast out")
        self.origin_ = None
        self.fitted_ = fit(
            frame, label, favourable, schema, check_names("immutable", immutable),
            self.hidden, self.tau, self.steps, self.seed, Progress(self.progress), learn, categorical, self.models,
        )  # fmt: skip
        if self.fast:
            self.fitted_ = amortise(self.fitted_, self.chosen_method, self.seed, Progress(self.progress))
        return self

    def explain(
        self,
        rows: pd.DataFrame,
        target: Any = None,
        n: int = 1,
        immutable: Iterable[Name] = (),
        rules: Iterable[str] = (),
        costs: Mapping[Name, float] | None = None,
        seed: int = 0,
        closeness: float | None = None,
        threshold: float | None = None,
        max_model_rows: int | None = None,
        robust: Ensemble | Sequence[Any] | None = None,
    ) -> Answer:
        """What would have to be different for the model to say `target` (by default the favourable class).

        - `target`: a class, or a goal: `AtLeast("good", 0.8)`, `Not("bad")`, `Between("good", 0.5, 0.7)`; of a model
          that predicts a number `Range(620, 680)`, `Range(high=8)`, `Change(500)`, `Change(share=-0.1)`; of a model
          with several outputs a dictionary, `{"approve": "yes", "rate": Range(high=8)}`; or a list with one of these
          per row.
        - `n`: options per row, at most 100.
        - `immutable`: features that must not change, besides those of the schema.
        - `rules`: what must hold, besides the schema's rules: `["loan <= 5 * income", "at most 3 changes"]`.
        - `costs`: what changing a feature costs, if not 1: `{"age": 5, "phone": 0}`; the method search heeds them.
        - `seed`: the same seed gives the same answer.
        - `closeness`: from 0 (typical of the target class) to 1 (as close as possible); None: the method's own setting.
        - `threshold`: the probability from which on the answer counts as the target; None: the target must be the most
          probable class.
        - `max_model_rows`: the model is asked about at most so many rows; then the best so far is returned.
        - `robust`: what `retrain` made, or a list of models that you trained again: nine in ten of them are to accept
          an answer as well; where none is found that they accept, the answer of the model alone is given.
        """
        fitted = self.fitted
        if not isinstance(rows, pd.DataFrame):
            raise InputError(
                f"rows must be a data frame, not {type(rows).__name__}; for one row use frame.loc[[label]]"
            )
        n = check_integer("n", n, 1, MOST_OPTIONS)
        seed = check_integer("seed", seed, 0, LAST_SEED)
        closeness = check_optional("closeness", closeness, check_number, 0, 1)
        threshold = check_optional("threshold", threshold, check_number, 0, 1 - 2 * STANDOFF, above=True)
        max_model_rows = check_optional("max_model_rows", max_model_rows, check_integer, 1)
        method = self.chosen_method
        if closeness is not None and not method.has_tradeoff:
            raise InputError(f"{type(method).__name__} has no closeness to set; leave it out")
        least = len(rows) * (n + 2)
        if max_model_rows is not None and max_model_rows < least:
            raise InputError(f"max_model_rows is {max_model_rows:,}, but {len(rows):,} rows with n={n} need at least "
                             f"{least:,}: each row is asked about as it is, and so is each answer")  # fmt: skip
        rules = check_texts("rules", rules)
        feasible = FeasibleSet.of(fitted.encoder, rows, check_names("immutable", immutable), rules)
        prices = {**self.schema.costs, **self.schema.checked_costs({} if costs is None else costs)}
        ensemble = self._committee(robust)
        if ensemble is not None and max_model_rows is not None:
            raise InputError("max_model_rows does not go with robust, which asks several models; leave one of them out")
        task = fitted.task(feasible.immutable, max_model_rows, ensemble, self.fast)
        goals = resolve_goals(
            target, threshold, fitted.favourable, fitted.outputs, len(rows), lambda: task.oracle.score(feasible.own)
        )
        question = Question(goals, n, seed, closeness, rules, prices, target_to_json(target), threshold, max_model_rows,
                            None if ensemble is None else len(ensemble),
                            None if ensemble is None else ensemble.retraining)  # fmt: skip
        ready = method.fit(task)
        if ensemble is None:
            found = explain(ready, feasible, question, Progress(self.progress), reasons=True)
        else:
            alone = method.fit(replace(task, oracle=Oracle(fitted.model, max_model_rows)))
            found = explain_robustly(ready, alone, ensemble, feasible, question, Progress(self.progress))
        if max_model_rows is None:  # which would ask more
            found = explain_conflicts(ready, rows, feasible, question, found)
        oracle = task_of(ready).oracle
        if ensemble is not None:
            other = task_of(alone).oracle
            oracle.calls, oracle.rows = oracle.calls + other.calls, oracle.rows + other.rows
        self.asked_ = self.asked_[0] + oracle.calls, self.asked_[1] + oracle.rows
        labels = tuple(label for output in fitted.outputs for label in output.labels())
        return Answer.of(rows, feasible, question, found, labels, oracle, self._context(), self.provenance)

    def retrain(self, table: pd.DataFrame, models: int = 10, seed: int = 1) -> Ensemble:
        """Models of the same kind, each trained on rows drawn from the table with replacement and from another start:
        for `explain(..., robust=…)`. A model of yours must be an estimator with `fit`; `table` has the label."""
        fitted, count = self.fitted, check_integer("models", models, 1, 1000)
        check_table(table)
        made = retrain_ensemble(
            fitted.model, fitted.encoder, table, fitted.label, lambda: torch.from_numpy(fitted.class_numbers(table)),
            count, check_integer("seed", seed, 0, LAST_SEED - count), plan_for(CLASSIFIER, len(table)), Progress(self.progress),
        )  # fmt: skip
        return replace(made, retraining={"seed": seed, "table": self._digest(table)})

    def _digest(self, table: pd.DataFrame) -> str:
        """Of a table with the label."""
        return table_digest(self.schema, self.fitted.encoder.read(table), table[self.fitted.label])

    def evaluate(self, answer: Answer, table: pd.DataFrame | None = None, retrain: int = 0) -> dict[str, float]:
        """How good an answer of this explainer is: the paper's metrics and some more (docs/metrics.md), against real
        rows of `table`, or else the training rows or synthetic people that it holds. With `retrain`, so many models are
        trained again on the table, and `retrained` is the share of the valid answers that such a model still accepts.

        The same as `tdce.evaluate(explainer, answer, table, retrain)`."""
        return evaluate(self, answer, table, retrain)

    def predict_proba(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The explained model's probability of each class, one column per class, to six decimals, as in answers."""
        fitted, output = self.fitted, self.fitted.outputs[0]
        if not output.classes:
            raise InputError("the model predicts a number and no classes; use predict")
        p = round_scores(Oracle(fitted.model).score(fitted.encoder.read(rows)))[:, : len(output.classes)]
        return pd.DataFrame(p.numpy(), index=rows.index, columns=list(output.classes))

    def predict(self, rows: pd.DataFrame) -> pd.Series[Any]:
        """What the explained model says: its class (of several outputs the first), or its number."""
        fitted, output = self.fitted, self.fitted.outputs[0]
        score = round_scores(Oracle(fitted.model).score(fitted.encoder.read(rows)))
        said: Any = score[:, 0].numpy()
        if output.classes:
            said = [output.classes[i] for i in output.group(score).tolist()]
        return pd.Series(said, index=rows.index, name=output.name or fitted.label)

    @property
    def schema(self) -> Schema:
        return self.fitted.encoder.schema

    def with_words(self, words: Mapping[Name, Any], outcomes: Mapping[str, Any] | None = None) -> Self:
        """A copy that speaks of these columns in other words, `{"income": {"label": "the pay"}}`, and of what the model
        says; nothing is learned again. docs/words.md says what words there are."""
        schema = self.schema
        for name, said in words.items():
            schema = schema.change(name, words=said)
        if outcomes is not None:
            schema = replace(schema, outcomes=outcomes)
        encoder, made = self.fitted.encoder, copy(self)
        columns = tuple(replace(each, column=column) for each, column in zip(encoder.columns, schema, strict=True))
        made.fitted_ = replace(self.fitted, encoder=replace(encoder, columns=columns, known=schema))
        return made

    @property
    def hints(self) -> tuple[str, ...]:
        """What a careful person would notice about the columns, one sentence each; after `load` there are none."""
        return self.fitted.hints

    @property
    def report(self) -> dict[str, Any]:
        """Rows, accuracy together with that of always predicting the most common class, calibration error, versions;
        after `fit` also its seconds, which are not saved. `model_calls` and `model_rows`: how often `explain` has asked
        the model, and about how many rows."""
        calls, rows = self.asked_
        return self.fitted.report | {"model_calls": calls, "model_rows": rows}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to one file: tensors and JSON, no code, under one checksum. The training rows are
        left out unless `keep_rows` is set."""
        saved, where = self._saved(), check_path("path", path)
        digest = artefact.save(where, saved)
        self.file_, self.origin_ = (saved, digest), _origin(where, digest)

    @classmethod
    def load(cls, path: str | os.PathLike[str], progress: Mode = "auto", model: Any = None) -> Self:
        """Read an artefact written by `save`; one that is damaged, changed or of another format is refused.

        `model`: the model that it was made for, if that was given to the explainer; another one is refused.
        """
        progress = check_choice("progress", progress, get_args(Mode))
        where = check_path("path", path)
        saved, digest = artefact.load(where)
        explainer = cls(
            saved.method, model=model, hidden=saved.hidden, tau=saved.tau, steps=saved.steps, seed=saved.seed,
            keep_rows=saved.keep_rows, fast=saved.fast, progress=progress,
        )  # fmt: skip
        explainer.fitted_ = saved.fitted if explainer.models is None else saved.fitted.with_model(explainer.models)
        explainer.file_, explainer.origin_ = (explainer._saved(), digest), _origin(where, digest)
        return explainer

    def _committee(self, robust: Any) -> Ensemble | None:
        if robust is None or isinstance(robust, Ensemble):
            return robust
        if not isinstance(robust, list | tuple):
            raise InputError(f"robust is {show(robust)}; it must be what Explainer.retrain makes, or a list of models")
        return ensemble_of_models(self.fitted.model, self.fitted.encoder, robust)

    def population(self, table: pd.DataFrame | None = None) -> Population:
        """How many people stand where in each feature, by what the model says of them: for `Answer.to_html`.

        They are the people of a table, or the training rows if they are kept (`keep_rows`), or synthetic people. Of
        real people only bins of at least five are counted.
        """
        fitted = self.fitted
        output = fitted.outputs[0]
        if table is not None:
            raw = fitted.encoder.read(table)
            return Population.of(
                fitted.encoder, raw, Oracle(fitted.model).predict(raw).numpy(), answers_of(output), True
            )
        real = self.keep_rows and len(fitted.raw) > 0
        if (key := ("population", real)) not in fitted.memo:
            raw = fitted.raw if real else fitted.synthetic
            if fitted.classifier is not None:
                y = Oracle(fitted.model).predict(raw)
            else:  # what a model of the user's said when it was asked
                y = fitted.y if fitted.synthetic_scores is None or real else output.group(fitted.synthetic_scores)
            fitted.memo[key] = Population.of(fitted.encoder, raw, y.numpy(), answers_of(output), real)
        made: Population = fitted.memo[key]
        return made

    def _context(self) -> Context:
        fitted, method = self.fitted, self.chosen_method
        output = fitted.outputs[0]
        return Context(
            _called(fitted.decides), "" if fitted.label is None else str(fitted.label), len(output.classes),
            type(method).__name__, {key: getattr(method, key) for key in setting_types(type(method))}, fitted.report,
            self.origin_, self.population(),
        )  # fmt: skip

    @property
    def provenance(self) -> Provenance:
        """What its answers come from: hashes of its file (of the one that `save` would write, if there is none), of the
        model, of the schema and of the laws, the method with its settings, the versions and the machine."""
        saved = self._saved()
        if self.known_ is None or not self.known_[0].alike(saved):
            self.known_ = saved, Provenance.of(self.fitted, saved.method, self._fingerprint(saved))
        return replace(self.known_[1], machine=machine())  # it may have been sent to another one

    def _fingerprint(self, saved: artefact.Saved) -> str:
        if self.file_ is not None and self.file_[0].alike(saved):
            return self.file_[1]
        try:
            return artefact.fingerprint(saved)
        except InputError:  # it cannot be saved: a method that is not registered, say
            return ""

    def _saved(self) -> artefact.Saved:
        """What `save` writes."""
        method = self.chosen_method
        fast = (
            check_flag("fast", self.fast) and self.fitted.proposer is not None and isinstance(method, DiffusionSearch)
        )
        return artefact.Saved(
            self.fitted,
            method,
            self.hidden,
            self.tau,
            self.steps,
            self.seed,
            check_flag("keep_rows", self.keep_rows),
            fast,
        )

    @property
    def fitted(self) -> Fitted:
        """All that `fit` learned."""
        if not hasattr(self, "fitted_"):
            raise InputError("this explainer has learned nothing yet: call fit(frame, label=…) or Explainer.load(…)")
        return self.fitted_

    @property
    def chosen_method(self) -> Method:
        """The method with its settings."""
        if not isinstance(self.method, str):
            return self.method
        return METHODS[check_choice("method", self.method, METHODS)]()


def _called(model: Model) -> str:
    """What decides, for people; of a file without its folder, of an endpoint without its address."""
    if not isinstance(model, AdaptedModel):
        return OWN
    kinds_of = [(each.kind, "endpoint" if each.kind == "http" else Path(each.name).name) for each in model.models]
    return ", ".join(f"{name} ({kind})" for kind, name in kinds_of)


def _origin(path: Path, digest: str) -> Origin:
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Origin(path.name, digest, written.strftime("%Y-%m-%d %H:%M UTC"))


def _known(method: Any) -> str | Method:
    """A method's name or a method with settings; anything else is refused before any training."""
    if isinstance(method, str):
        check_choice("method", method, METHODS)
    elif isinstance(method, type) or not isinstance(method, Method):
        raise InputError(f"method is {show(method)}; it must be one of {listing(METHODS)}, or a method with "
                         "settings, e.g. TDCE(closeness=0.5)")  # fmt: skip
    return method  # type: ignore[no-any-return]
