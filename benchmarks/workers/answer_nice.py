"""NICE (package NICEx) explains the rows of a task; run by packages.py. It has no immutable features."""

import numpy as np
from nice import NICE
from wire import Worker

worker = Worker()
task = worker.task
words = np.flatnonzero(~task["numeric"]).tolist()
numbers = np.flatnonzero(task["numeric"]).tolist()
nice = NICE(
    worker.scores, task["train"], words, numbers, task["label"], optimization=str(task["setting"]), justified_cf=True
)
worker.ready()
favourable = [int(task["favourable"])]
worker.done([nice.explain(person[None].copy(), target_class=favourable) for person in task["people"]])
