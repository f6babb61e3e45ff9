"""
On Spark
========

Rows of a Spark table are answered by Python workers, each of which loads the explainer once. Spark needs Java 17.
"""

import os
import sys
import warnings
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers run the Python in which tdce is installed

warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # what is used here is tested

from pyspark.sql import SparkSession

import tdce

data = tdce.load("german")
saved = Path("german.tdce").resolve()
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
people = data.part("test").drop(columns=data.label).assign(customer=lambda frame: frame.index)
people.to_parquet("out_people.parquet", index=False)

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
table = spark.read.parquet("out_people.parquet")
answers = tdce.batch.spark.explain(table, str(saved), immutable=["purpose"])
answers.select("customer", "status", "score_before", "score_after").orderBy("customer").limit(5).show()

# %%
# The result is a lazy Spark table: filter it, join it, or let Spark write it with ``answers.write.parquet(...)``.

answers.groupBy("status").count().show()
spark.stop()
