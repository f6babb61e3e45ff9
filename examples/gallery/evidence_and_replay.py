"""
Evidence and replay
===================

An answer given today is questioned in two years. The record says what was asked and answered, and anybody with the artefact, the model and the rows
can check it.
"""

import json
from pathlib import Path

import tdce

data = tdce.load("german")
saved = Path("german.tdce")
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
explainer = tdce.Explainer.load(saved)
people = data.part("test").drop(columns=data.label)
refused = people[explainer.predict(people) == "bad"].head(5)

record = Path("out_evidence.jsonl")
explainer.explain(refused, n=2).to_evidence(record)

# %%
# One JSON object per line, each with the hash of the line before:

head, first, *rest = (json.loads(line) for line in record.read_text(encoding="utf-8").splitlines())
print({key: first[key] for key in ("record", "status", "changes", "previous", "hash")})

# %%
# Two years later: is the record whole, does the model still say so, and does the same question still give the same answers, to the bit?

found = tdce.verify(record, tdce.Explainer.load(saved), refused)
print(
    f"{found.lines} lines, {found.decisions} decisions hold, {found.replayed} answers replayed, {found.count} problems"
)

# %%
# Somebody makes one applicant's score look better:

text = record.read_text(encoding="utf-8")
score = f'"score_after":{first["score_after"]}'
assert score in text
Path("out_forged.jsonl").write_text(text.replace(score, '"score_after":0.9', 1), encoding="utf-8")
for problem in tdce.verify("out_forged.jsonl", tdce.Explainer.load(saved), refused).problems:
    print(f"line {problem.line}: {problem.message}")

# %%
# On the command line: ``tdce verify evidence.jsonl --artefact german.tdce --rows refused.csv``; with ``tdce keys`` and ``--sign`` the record is signed,
# with ``--secret`` it holds no personal value. :doc:`/evidence` says what that proves, and what it does not.
