"""DiCE (package dice-ml) explains the rows of a task; run by packages.py. A row that takes too long gets no answer."""

import signal
import warnings

import dice_ml
import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException
from wire import Worker

SECONDS = 20  # for one row, wall-clock time


class TooLateError(Exception):
    """A row took too long."""


def late(*_):
    raise TooLateError


class Model:
    """The model as DiCE expects one of scikit-learn."""

    def predict_proba(self, frame):
        return worker.scores(coded(frame))

    def predict(self, frame):
        return self.predict_proba(frame).argmax(axis=1)


def coded(frame):
    """(n, features) with categories as numbers."""
    return frame[names].astype(float).to_numpy()


def written(rows):
    """A frame with numbers, whole where the table's are, and categories in words."""
    frame = pd.DataFrame(rows, columns=names)
    for name, numeric, whole in zip(names, task["numeric"], task["whole"], strict=True):
        if not numeric:
            frame[name] = frame[name].astype(int).astype(str)
        elif whole:
            frame[name] = frame[name].astype(int)
    return frame


def answered(person):
    """(options, features) of one row, missing where there is none."""
    out = np.full((options, len(names)), np.nan)
    signal.alarm(SECONDS)
    try:
        found = dice.generate_counterfactuals(
            written(person[None]), total_CFs=options, desired_class=int(task["favourable"]), features_to_vary=free
        )
        frame = found.cf_examples_list[0].final_cfs_df
        if frame is not None:
            rows = coded(frame.head(options))
            out[: len(rows)] = np.where(np.isclose(rows, person, rtol=1e-6), person, rows)  # it works with 32 bits
    except (TooLateError, UserConfigValidationException):  # the second: none was found
        pass
    finally:
        signal.alarm(0)
    return out


warnings.simplefilter("ignore")
np.random.seed(0)
signal.signal(signal.SIGALRM, late)
worker = Worker()
task, options = worker.task, int(worker.task["options"])
names = [f"f{i}" for i in range(task["train"].shape[1])]
free = [name for name, stays in zip(names, task["immutable"], strict=True) if not stays]
table = written(task["train"]).assign(label=task["label"])
numbers = [name for name, numeric in zip(names, task["numeric"], strict=True) if numeric]
data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name="label")
dice = dice_ml.Dice(data, dice_ml.Model(model=Model(), backend="sklearn"), method=str(task["setting"]))
worker.ready()
worker.done([answered(person) for person in task["people"]])
