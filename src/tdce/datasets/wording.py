"""Wording of the German credit data for people, in English and German."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def both(english: str, german: str) -> dict[str, str]:
    """A text in both languages."""
    return {"en": english, "de": german}


YEARS = both("year|years", "Jahr|Jahre")

GERMAN_OUTCOMES: Mapping[str, Any] = {
    "good": both("Approved", "Bewilligt"),
    "bad": both("Refused", "Abgelehnt"),
}

GERMAN_WORDS: Mapping[str, Mapping[str, Any]] = {
    "checking_account": {
        "label": both("the checking account", "das Girokonto"),
        "values": {
            "below 0 DM": both("overdrawn", "überzogen"),
            "0 to 200 DM": both("between 0 and 200 DM", "zwischen 0 und 200 DM"),
            "200 DM or more": both("at 200 DM or more", "bei 200 DM oder mehr"),
            "no account": both("non-existent", "nicht vorhanden"),
        },
    },
    "duration_months": {
        "label": both("the term of the loan", "die Laufzeit des Kredits"),
        "unit": both("month|months", "Monat|Monate"),
        "verb": both("the loan ran {change}", "der Kredit {change} liefe"),
    },
    "credit_history": {
        "label": both("the credit history", "die Kredithistorie"),
        "values": {
            "all repaid at this bank": both("all credits at this bank repaid", "alle Kredite bei dieser Bank getilgt"),
            "critical or credits elsewhere": both("a critical account or credits elsewhere",
                                                  "ein kritisches Konto oder Kredite anderswo"),
            "delays in the past": both("delays in the past", "Verzögerungen in der Vergangenheit"),
            "no credits or all repaid": both("no credits or all repaid", "keine Kredite oder alle getilgt"),
            "repaid on time so far": both("credits repaid on time so far", "bisher pünktlich bediente Kredite"),
        },
        "verb": both("{label} showed {change}", "{label} {change} zeigte"),
    },
    "purpose": {
        "label": both("the purpose of the loan", "der Zweck des Kredits"),
        "values": {
            "appliances": both("household appliances", "Haushaltsgeräte"),
            "business": both("business", "Geschäftliches"),
            "education": both("education", "Ausbildung"),
            "furniture": both("furniture", "Möbel"),
            "new car": both("a new car", "einen Neuwagen"),
            "other": both("other things", "Sonstiges"),
            "radio or television": both("a radio or television", "Radio oder Fernsehen"),
            "repairs": both("repairs", "Reparaturen"),
            "retraining": both("retraining", "Umschulung"),
            "used car": both("a used car", "einen Gebrauchtwagen"),
        },
        "verb": both("the loan were for {change}", "der Kredit für {change} wäre"),
    },
    "credit_amount": {
        "label": both("the amount", "der Betrag"),
        "unit": "DEM",
        "format": "money",
        "verb": both("{label} were {change}", "{label} {change} betrüge"),
    },
    "savings": {
        "label": both("the savings", "die Ersparnisse"),
        "values": {
            "below 100 DM": both("below 100 DM", "unter 100 DM"),
            "100 to 500 DM": both("100 to 500 DM", "100 bis 500 DM"),
            "500 to 1000 DM": both("500 to 1,000 DM", "500 bis 1.000 DM"),
            "1000 DM or more": both("1,000 DM or more", "1.000 DM oder mehr"),
            "unknown or no savings": both("unknown or none", "unbekannt oder nicht vorhanden"),
        },
        "verb": both("{label} were {change}", "{label} {change} wären"),
    },
    "employment": {
        "label": both("the time in the present job", "die Zeit in der jetzigen Stelle"),
        "values": {
            "unemployed": both("none (unemployed)", "keine (arbeitslos)"),
            "under 1 year": both("under 1 year", "unter 1 Jahr"),
            "1 to 4 years": both("1 to 4 years", "1 bis 4 Jahre"),
            "4 to 7 years": both("4 to 7 years", "4 bis 7 Jahre"),
            "7 years or more": both("7 years or more", "7 Jahre oder mehr"),
        },
    },
    "instalment_rate": {"label": both("the class of the instalment rate", "die Klasse der Ratenhöhe")},
    "personal_status": {
        "label": both("sex and marital status", "Geschlecht und Familienstand"),
        "values": {
            "female divorced/separated/married": both("female, divorced, separated or married",
                                                      "weiblich, geschieden, getrennt oder verheiratet"),
            "male divorced/separated": both("male, divorced or separated", "männlich, geschieden oder getrennt"),
            "male married/widowed": both("male, married or widowed", "männlich, verheiratet oder verwitwet"),
            "male single": both("male, single", "männlich, ledig"),
        },
    },
    "other_debtors": {
        "label": both("others who are liable", "weitere Haftende"),
        "values": {
            "co-applicant": both("a co-applicant", "ein Mitantragsteller"),
            "guarantor": both("a guarantor", "ein Bürge"),
            "nobody": both("nobody", "niemand"),
        },
        "verb": both("{change} were liable as well", "{change} mithaftete"),
    },
    "residence_years": {
        "label": both("the time at the present address", "die Zeit an der jetzigen Adresse"),
        "unit": YEARS,
        "verb": both("{label} were {change}", "{label} {change} betrüge"),
    },
    "property": {
        "label": both("the most valuable property", "der wertvollste Besitz"),
        "values": {
            "building savings or life insurance": both("a building savings plan or life insurance",
                                                       "ein Bausparvertrag oder eine Lebensversicherung"),
            "car or other": both("a car or the like", "ein Auto oder Ähnliches"),
            "real estate": both("real estate", "eine Immobilie"),
            "unknown or no property": both("unknown or none", "unbekannt oder keiner"),
        },
    },
    "age": {"label": both("the age", "das Alter"), "unit": YEARS},
    "other_instalment_plans": {
        "label": both("other instalment plans", "weitere Ratenzahlungen"),
        "values": {
            "bank": both("at a bank", "bei einer Bank"),
            "no plan": both("none", "keine"),
            "stores": both("at stores", "bei Geschäften"),
        },
        "verb": both("{label} were {change}", "{label} {change} wären"),
    },
    "housing": {
        "label": both("the home", "die Wohnung"),
        "values": {
            "free": both("rent-free", "mietfrei"),
            "own": both("owned", "Eigentum"),
            "rent": both("rented", "gemietet"),
        },
    },
    "existing_credits": {"label": both("the number of credits at this bank", "die Zahl der Kredite bei dieser Bank")},
    "job": {
        "label": both("the job", "die Tätigkeit"),
        "values": {
            "management or self-employed": both("managerial or self-employed", "leitend oder selbständig"),
            "skilled or official": both("skilled or in public service", "qualifiziert oder im öffentlichen Dienst"),
            "unemployed or unskilled non-resident": both("none, or unskilled without residence",
                                                         "keine, oder ungelernt ohne Wohnsitz"),
            "unskilled resident": both("unskilled", "ungelernt"),
        },
    },
    "people_supported": {"label": both("the number of dependants", "die Zahl der Unterhaltsberechtigten")},
    "telephone": {
        "label": both("the telephone", "das Telefon"),
        "values": {"no": both("not registered", "nicht angemeldet"), "yes": both("registered", "angemeldet")},
    },
    "foreign_worker": {
        "label": both("foreign worker", "ausländische Arbeitskraft"),
        "values": {"no": both("no", "nein"), "yes": both("yes", "ja")},
    },
}  # fmt: skip
