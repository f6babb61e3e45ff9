"""
From a table to letters
=======================

A lender has eight hundred past loans and a LightGBM model that says yes or no to new ones. Its model is accurate enough, but those who are refused ask
what they could do, and so far nobody can say. By the end of this page each of them has a letter, the analyst has a report, and the auditor has
something to check. You need pandas and scikit-learn's habits, and nothing about diffusion models.
"""

# %%
# The table
# ---------
#
# Each row is an applicant, each column something that the lender knew when it decided. ``credit_risk`` is how the loan went. A hundred further
# applicants play the people who come tomorrow.

from pathlib import Path

import lightgbm
import pandas as pd

import tdce

data = tdce.load("german")
past, tomorrow = data.part("train"), data.part("test")
past.iloc[:3, :8]

# %%
# The model
# ---------
#
# LightGBM takes categories as they are, if the columns say that they are categories. Their list has to be the same in every table, so we fix it once.

words = past.drop(columns=data.label).select_dtypes(exclude="number").columns
kinds = {name: pd.CategoricalDtype(sorted(data.frame[name].unique())) for name in words}
past, tomorrow = past.astype(kinds), tomorrow.astype(kinds)

model = lightgbm.LGBMClassifier(
    n_estimators=60, learning_rate=0.08, num_leaves=15, random_state=0, n_jobs=1, verbose=-1
)
model.fit(past.drop(columns=data.label), past[data.label])
applicants = tomorrow.drop(columns=data.label)
print(f"right about {(model.predict(applicants) == tomorrow[data.label]).mean():.0%} of the people of tomorrow")

# %%
# Of those people, these are refused:

refused = applicants[model.predict(applicants) == "bad"]
print(len(refused), "of", len(applicants))

# %%
# What may change
# ---------------
#
# Nobody gets younger to please a lender. Before anything is learned, look at how each column is understood. What nobody can act upon has a role
# that says so: ``age`` passes with time, past delays are history, the family is a given.

schema = tdce.Schema.infer(past, data.label)
pd.Series(schema.roles).rename_axis("column").reset_index(name="role").groupby("role")["column"].agg(
    ", ".join
).to_frame()

# %%
# The schema that comes with this table has these roles, a few rules of decency ("nobody is advised to become unemployed"), and words for
# people to read. For a table of your own you would edit the inferred one: ``schema.freeze("housing")``, ``schema.change("credit_amount",
# high=10_000)``, ``schema.with_rules(...)``.

print(*data.schema.rules, sep="\n")

# %%
# Learning the table
# ------------------
#
# ``fit`` learns what rows of this table look like, with a diffusion model, so that answers are people who could exist. The model that decides stays
# yours: it is asked, never imitated. This takes less than a minute. ``hints`` would name columns that look like ids, leaks or mistakes.

explainer = tdce.Explainer(model=model)
explainer.fit(past, label=data.label, favourable=data.favourable, schema=data.schema)
print(*explainer.hints or ["no hints"], sep="\n")

# %%
# What would have to be different
# -------------------------------
#
# Ask for the first five people, with two options each.

answer = explainer.explain(refused.head(5), n=2)
answer.changes().head(8)

# %%
# One line per person and option, never fewer. ``status`` says whether the model now agrees; ``plausibility``, how typical such an applicant is among
# those who paid; ``safety``, how likely next year's model would agree as well.

answer.to_frame()[["row", "option", "status", "score_before", "score_after", "plausibility", "safety"]]

# %%
# Do not take our word for it. Give the lines to the model:

lines = answer.to_frame()
print(*model.predict(lines[applicants.columns].astype(kinds)))

# %%
# In words:

for row, sentence in zip(lines["row"], answer.sentences(), strict=True):
    print(f"{row}: {sentence}")

# %%
# A conversation with the credit department
# -----------------------------------------
#
# The department objects: *we do not lend more than 400 DM a month of term, nobody should be told to change two things, and do not tell people to take
# their loan for something else.* These are rules, and a question can bring them along.

house_rules = ["credit_amount <= 400 * duration_months", "at most 1 change"]
answer = explainer.explain(refused, n=2, rules=house_rules, immutable=["purpose"])
pd.Series(answer.counts()).rename("lines").to_frame()

# %%
# Where the rules leave no way to a yes, the line is still there, and its note says which rule is in the way. ``best_effort`` is what
# comes nearest:

for line in answer.to_frame().query("status != 'valid' and option == 0").itertuples():
    print(f"{line.row}: {line.status}, {line.note}")

# %%
# How good are they?
# ------------------
#
# ``evaluate`` measures the first option of each person: do they hold, how many features change, how near are they to real people who paid.

measured = explainer.evaluate(answer, past)
pd.Series(measured).loc[["validity", "sparsity", "violations", "plausibility"]].round(2).to_frame("value")

# %%
# What changes most often tells the department something about its own model:

import matplotlib.pyplot as plt

counts = answer.changes().query("option == 0")["feature"].value_counts()
fig, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.barh(counts.index[::-1], counts.to_numpy()[::-1], color="#2f6690")
axes.set(xlabel=f"people (of {len(refused)} who were refused)", title="What would have to be different")
axes.spines[["top", "right"]].set_visible(False)

# %%
# The letters
# -----------
#
# A letter to an applicant has the decision, its principal reasons, what would change it, and whom to ask, in the words of the schema; it says that
# nothing is promised. Who has no way to a yes reads that, too. Features that the schema hides from applicants are not in it.

out = Path("out")
out.mkdir(exist_ok=True)
signed = {"date": "2026-01-31", "sender": "Example Bank", "contact": "your branch"}
letters = dict(zip(refused.index, answer.letters(**signed), strict=True))
for row, letter in letters.items():
    (out / f"letter_{row}.txt").write_text(letter, encoding="utf-8")
print(letters[refused.index[0]])

# %%
# The same in German (:doc:`/language` has Word documents, templates and other languages):

print(answer.letters("de", **signed | {"contact": "Ihre Filiale"})[0])

# %%
# The report
# ----------
#
# One page for the analyst, which opens from disk: everybody with their options beside other people, what changes how often, and how groups fare.

answer.to_html(out / "report.html", metrics=measured, population=explainer.population(past))
print(f"out/report.html, {(out / 'report.html').stat().st_size // 1024} kB")

# %%
# For the auditor, and for tomorrow
# ---------------------------------
#
# Save the explainer (it holds no applicant's row) and the evidence of what was said. Whoever has the file, the model and the rows can check
# that each answer still holds, and that nothing in the record was altered.

explainer.save(out / "loans.tdce")
answer.to_evidence(out / "evidence.jsonl")
again = tdce.Explainer.load(out / "loans.tdce", model=model)
found = tdce.verify(out / "evidence.jsonl", again, refused)
print(f"{found.decisions} decisions hold, {found.replayed} answers are the same again, {found.count} problems")

# %%
# Where to go from here: the :doc:`gallery </gallery/index>` for other models, targets and engines, the :doc:`pitfalls </pitfalls/index>` before you
# send the first letter, :doc:`/studio` to try values by hand, and :doc:`/command_line` if the nightly job is a shell script.
