"""The content of an artefact as plain values, for `tdce inspect` and for scripts."""

from __future__ import annotations

from typing import Any

from tdce.explainer.artefact import Saved
from tdce.explainer.provenance import Provenance
from tdce.explainer.sealed_file import FORMAT
from tdce.models import favourable_to_json
from tdce.report import Origin, accuracy_rows


def inspect_saved(saved: Saved, provenance: Provenance, origin: Origin | None) -> dict[str, Any]:
    """What `Explainer.inspect` returns; `origin`: the file, if there is one."""
    fitted = saved.fitted
    schema, report = fitted.encoder.schema, fitted.report
    kinds = {str(f.name): row for f, row in zip(schema, schema.describe(), strict=True)}
    return {
        "file": None if origin is None else {"name": origin.name, "bytes": origin.size, "written": origin.written},
        "digest": provenance.artefact,
        "format": FORMAT,
        "rows": report["rows"],
        "label": fitted.label,
        "favourable": favourable_to_json(fitted.favourable),
        "columns": [
            {"name": f.name, "kind": f.kind, "values": kinds[str(f.name)][2], "role": schema.roles[f.name],
             "may_change": kinds[str(f.name)][3], "missing": f.missing}
            for f in schema
        ],
        "laws": [
            {"law": str(law), "rows": law.support, "exceptions": law.exceptions, "on": law.on} for law in schema.laws
        ],
        "rules": list(schema.rules),
        "causes": [{"name": name, "causes": list(causes)} for name, causes in schema.causes.items()],
        "models": [dict(model) for model in provenance.models],
        "outputs": [{"name": output.name, "classes": list(output.classes)} for output in fitted.outputs],
        "accuracy": {
            **{name: report[name] for name in ("accuracy", "commonest_class", "calibration_error", "test_rows")},
            "accuracy_rows": accuracy_rows(report),
        },
        "method": {"name": provenance.method, "settings": dict(provenance.settings)},
        "settings": {"hidden": saved.hidden, "tau": list(saved.tau), "steps": saved.steps, "seed": saved.seed,
                     "exact": fitted.exact},
        "holds": {
            "training_rows": len(fitted.raw) if saved.keep_rows else 0,
            "synthetic_rows": len(fitted.synthetic),
            "precedents": 0 if fitted.precedents is None else len(fitted.precedents[0]),
        },
        "versions": dict(report["versions"]),
        "hashes": {"schema": provenance.schema, "laws": provenance.laws},
    }  # fmt: skip
