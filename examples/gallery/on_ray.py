"""
On Ray
======

Rows of a Ray data set are answered by actors, each of which loads the explainer once. The answers are those of one process, to the bit.
"""

import os
from pathlib import Path

os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
os.environ["RAY_DATA_LOG_LEVEL"] = "ERROR"

import ray

import tdce

data = tdce.load("german")
saved = Path("german.tdce").resolve()
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
people = data.part("test").drop(columns=data.label).assign(customer=lambda frame: frame.index)

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
dataset = ray.data.from_pandas(people)
answers = tdce.batch.ray.explain(dataset, str(saved), workers=1, immutable=["purpose"]).to_pandas()
ray.shutdown()
answers[["customer", "status", "score_before", "score_after"]].sort_values("customer").head()

# %%
# An engine's table has no order, so a column of yours, here ``customer``, says which row a line belongs to. The same question, without Ray:

alone = tdce.Explainer.load(saved).explain(people, immutable=["purpose"]).to_frame()
both = answers.merge(alone, on="customer", suffixes=("", "_alone"))
print("same values:", (both["credit_amount"] == both["credit_amount_alone"]).all())
print("same scores:", (both["score_after"] == both["score_after_alone"]).all())

# %%
# On the command line: ``tdce explain loans.tdce s3://bucket/rows/ --engine ray --workers 64 --out answers.parquet``.
