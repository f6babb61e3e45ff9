"""Words of the German credit data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tdce.datasets.wording.forms import AGE, both, filled, value

NOTHING = both("", "")  # if the old value goes without saying

GERMAN_OUTCOMES: Mapping[str, Any] = {
    "good": {
        "name": both("Approved", "Bewilligt"),
        "fact": both("your application was approved", "Ihr Antrag wurde bewilligt"),
        "refusal": both("your application was not approved", "Ihr Antrag wurde nicht bewilligt"),
        "clause": both("your application would be approved", "Ihr Antrag würde bewilligt"),
    },
    "bad": {
        "name": both("Refused", "Abgelehnt"),
        "fact": both("your application was refused", "Ihr Antrag wurde abgelehnt"),
        "refusal": both("your application was not refused", "Ihr Antrag wurde nicht abgelehnt"),
        "clause": both("your application would be refused", "Ihr Antrag würde abgelehnt"),
    },
}

GERMAN_WORDS: Mapping[str, Mapping[str, Any]] = {
    "checking_account": {
        "label": both("the checking account", "das Girokonto"),
        "values": {
            "below 0 DM": value(
                both("overdrawn", "überzogen"),
                both("Your checking account is overdrawn", "Ihr Girokonto ist überzogen"),
                both("you had an overdrawn checking account {instead}",
                     "Sie ein überzogenes Girokonto {instead} hätten"),
                both("instead of an overdrawn one", "statt eines überzogenen"),
            ),
            "0 to 200 DM": value(
                both("0 to 200 DM", "0 bis 200 DM"),
                both("Your checking account holds less than 200 DM", "Auf Ihrem Girokonto sind weniger als 200 DM"),
                both("you had a checking account with 0 to 200 DM {instead}",
                     "Sie ein Girokonto mit 0 bis 200 DM {instead} hätten"),
                both("instead of one with less than 200 DM", "statt eines mit weniger als 200 DM"),
            ),
            "200 DM or more": value(
                both("200 DM or more", "200 DM oder mehr"),
                both("Your checking account holds 200 DM or more", "Auf Ihrem Girokonto sind 200 DM oder mehr"),
                both("you had a checking account with 200 DM or more {instead}",
                     "Sie ein Girokonto mit 200 DM oder mehr {instead} hätten"),
                both("instead of one with 200 DM or more", "statt eines mit 200 DM oder mehr"),
            ),
            "no account": value(
                both("none", "keines"),
                both("You have no checking account", "Sie haben kein Girokonto"),
                both("you no longer had a checking account", "Sie kein Girokonto mehr hätten"),
                NOTHING,
            ),
        },
    },
    "duration_months": {
        "label": both("the term of the loan", "die Laufzeit des Kredits"),
        "unit": both("month|months", "Monat|Monate"),
        "verb": both("the loan ran for {change}", "der Kredit {change} liefe"),
        "fact": both("The loan is to run for {value}", "Der Kredit soll {value} laufen"),
    },
    "credit_history": {
        "label": both("the credit history", "die Kredithistorie"),
        "values": {
            "all repaid at this bank": value(
                both("all loans at this bank repaid", "alle Kredite bei dieser Bank getilgt"),
                both("You have repaid all your loans at this bank", "Sie haben alle Kredite bei dieser Bank getilgt"),
                both("you had repaid all your loans at this bank", "Sie alle Kredite bei dieser Bank getilgt hätten"),
                NOTHING,
            ),
            "critical or credits elsewhere": value(
                both("critical account, or loans elsewhere", "kritisches Konto oder Kredite anderswo"),
                both("Your account is considered critical, or you have loans at other banks",
                     "Ihr Konto gilt als kritisch, oder Sie haben Kredite bei anderen Banken"),
                both("your account were considered critical, or you had loans at other banks",
                     "Ihr Konto als kritisch gälte oder Sie Kredite bei anderen Banken hätten"),
                NOTHING,
            ),
            "delays in the past": value(
                both("late payments in the past", "Zahlungsverzug in der Vergangenheit"),
                both("You have been late with payments in the past",
                     "Sie waren in der Vergangenheit mit Zahlungen in Verzug"),
                both("you had been late with payments in the past",
                     "Sie in der Vergangenheit mit Zahlungen in Verzug gewesen wären"),
                NOTHING,
            ),
            "no credits or all repaid": value(
                both("no loans, or all repaid", "keine Kredite, oder alle getilgt"),
                both("You have taken no loans, or have repaid all of them",
                     "Sie haben keine Kredite aufgenommen oder alle getilgt"),
                both("you had taken no loans, or had repaid all of them",
                     "Sie keine Kredite aufgenommen oder alle getilgt hätten"),
                NOTHING,
            ),
            "repaid on time so far": value(
                both("present loans repaid on time so far", "laufende Kredite bisher pünktlich bedient"),
                both("You have repaid your present loans on time so far",
                     "Sie haben Ihre laufenden Kredite bisher pünktlich bedient"),
                both("you had repaid your present loans on time so far",
                     "Sie Ihre laufenden Kredite bisher pünktlich bedient hätten"),
                NOTHING,
            ),
        },
    },
    "purpose": {
        "label": both("the purpose of the loan", "der Verwendungszweck"),
        "values": filled(
            both("you used the money for * {instead}", "Sie das Geld für * {instead} verwendeten"),
            both("The loan is for *", "Der Kredit ist für * gedacht"),
            both("instead of *", "statt für *"),
            {
                "appliances": (both("household appliances", "Haushaltsgeräte"),
                               both("household appliances", "Haushaltsgeräte")),
                "business": (both("business", "Geschäftliches"), both("business purposes", "geschäftliche Zwecke")),
                "education": (both("education", "Ausbildung"), both("education", "eine Ausbildung")),
                "furniture": (both("furniture", "Möbel"), both("furniture", "Möbel")),
                "new car": (both("new car", "Neuwagen"), both("a new car", "einen Neuwagen")),
                "other": (both("other", "Sonstiges"), both("another purpose", "einen anderen Zweck")),
                "radio or television": (both("radio or television", "Radio oder Fernseher"),
                                        both("a radio or television", "ein Radio oder einen Fernseher")),
                "repairs": (both("repairs", "Reparaturen"), both("repairs", "Reparaturen")),
                "retraining": (both("retraining", "Umschulung"), both("retraining", "eine Umschulung")),
                "used car": (both("used car", "Gebrauchtwagen"), both("a used car", "einen Gebrauchtwagen")),
            },
        ),
    },
    "credit_amount": {
        "label": both("the amount of the loan", "der Kreditbetrag"),
        "unit": "DM",
        "verb": both("{label} were {change}", "{label} {change} betrüge"),
        "fact": both("The amount of the loan is {value}", "Der Kreditbetrag beläuft sich auf {value}"),
    },
    "savings": {
        "label": both("the savings", "die Ersparnisse"),
        "values": {
            **filled(
                both("you had savings of * {instead}", "Sie Ersparnisse von * {instead} hätten"),
                both("You have savings of *", "Sie haben Ersparnisse von *"),
                both("instead of *", "statt von *"),
                {
                    "below 100 DM": (both("below 100 DM", "unter 100 DM"),
                                     both("less than 100 DM", "weniger als 100 DM")),
                    "100 to 500 DM": (both("100 to 500 DM", "100 bis 500 DM"),
                                      both("100 to 500 DM", "100 bis 500 DM")),
                    "500 to 1000 DM": (both("500 to 1,000 DM", "500 bis 1.000 DM"),
                                       both("500 to 1,000 DM", "500 bis 1.000 DM")),
                    "1000 DM or more": (both("1,000 DM or more", "1.000 DM oder mehr"),
                                        both("1,000 DM or more", "1.000 DM oder mehr")),
                },
            ),
            "unknown or no savings": value(
                both("none known", "keine bekannt"),
                both("We know of no savings of yours", "Uns sind keine Ersparnisse von Ihnen bekannt"),
                both("we knew of no savings of yours", "uns keine Ersparnisse von Ihnen bekannt wären"),
                both("instead of none that we know of", ""),
            ),
        },
    },
    "employment": {
        "label": both("the time with the present employer", "die Beschäftigungsdauer"),
        "values": {
            **filled(
                both("you had been with your present employer for * {instead}",
                     "Sie seit * {instead} bei Ihrem jetzigen Arbeitgeber beschäftigt wären"),
                both("You have been with your present employer for *",
                     "Sie sind seit * bei Ihrem jetzigen Arbeitgeber beschäftigt"),
                both("instead of *", "statt seit *"),
                {
                    "under 1 year": (both("under 1 year", "unter 1 Jahr"),
                                     both("less than a year", "weniger als einem Jahr")),
                    "1 to 4 years": (both("1 to 4 years", "1 bis 4 Jahre"), both("1 to 4 years", "1 bis 4 Jahren")),
                    "4 to 7 years": (both("4 to 7 years", "4 bis 7 Jahre"), both("4 to 7 years", "4 bis 7 Jahren")),
                    "7 years or more": (both("7 years or more", "7 Jahre oder mehr"),
                                        both("7 years or more", "7 Jahren oder länger")),
                },
            ),
            "unemployed": value(
                both("unemployed", "arbeitslos"),
                both("You are unemployed", "Sie sind arbeitslos"),
                both("you were unemployed", "Sie arbeitslos wären"),
                both("instead of being unemployed", ""),
            ),
        },
    },
    "instalment_rate": {
        "label": both("the instalment class", "die Ratenklasse"),
        "verb": both("the instalments were in class {change}", "die Raten in Klasse {change} fielen"),
        "fact": both("The instalments are in class {value}, on a scale from 1 to 4",
                     "Die Raten fallen in Klasse {value} auf einer Skala von 1 bis 4"),
    },
    "personal_status": {
        "label": both("the sex and marital status", "Geschlecht und Familienstand"),
        "values": {
            "female divorced/separated/married": value(
                both("female; divorced, separated or married", "weiblich; geschieden, getrennt oder verheiratet"),
                None,
                both("you were a divorced, separated or married woman {instead}",
                     "Sie eine geschiedene, getrennt lebende oder verheiratete Frau {instead} wären"),
                both("instead of a divorced, separated or married woman",
                     "statt einer geschiedenen, getrennt lebenden oder verheirateten Frau"),
            ),
            "male divorced/separated": value(
                both("male; divorced or separated", "männlich; geschieden oder getrennt"),
                None,
                both("you were a divorced or separated man {instead}",
                     "Sie ein geschiedener oder getrennt lebender Mann {instead} wären"),
                both("instead of a divorced or separated man",
                     "statt eines geschiedenen oder getrennt lebenden Mannes"),
            ),
            "male married/widowed": value(
                both("male; married or widowed", "männlich; verheiratet oder verwitwet"),
                None,
                both("you were a married or widowed man {instead}",
                     "Sie ein verheirateter oder verwitweter Mann {instead} wären"),
                both("instead of a married or widowed man", "statt eines verheirateten oder verwitweten Mannes"),
            ),
            "male single": value(
                both("male; single", "männlich; ledig"),
                None,
                both("you were a single man {instead}", "Sie ein lediger Mann {instead} wären"),
                both("instead of a single man", "statt eines ledigen Mannes"),
            ),
        },
    },
    "other_debtors": {
        "label": both("the co-applicant or guarantor", "die Mithaftung"),
        "values": {
            "co-applicant": value(
                both("a co-applicant", "zweite antragstellende Person"),
                both("You are applying together with somebody else",
                     "Sie beantragen den Kredit gemeinsam mit einer weiteren Person"),
                both("you applied together with somebody else {instead}",
                     "Sie den Kredit gemeinsam mit einer weiteren Person {instead} beantragten"),
                both("instead of together with somebody else", "statt gemeinsam mit einer weiteren Person"),
            ),
            "guarantor": value(
                both("a guarantor", "Bürgschaft"),
                both("Somebody guarantees the loan", "Für den Kredit besteht eine Bürgschaft"),
                both("you applied with a guarantor {instead}",
                     "Sie den Kredit mit einer Bürgschaft {instead} beantragten"),
                both("instead of with a guarantor", "statt mit einer Bürgschaft"),
            ),
            "nobody": value(
                both("none", "keine"),
                both("Nobody else is liable for the loan", "Außer Ihnen haftet niemand für den Kredit"),
                both("you applied alone and without a guarantor",
                     "Sie den Kredit allein und ohne Bürgschaft beantragten"),
                NOTHING,
            ),
        },
    },
    "residence_years": {
        "label": both("the time at the present address", "die Wohndauer an der jetzigen Adresse"),
        "unit": both("year|years", "Jahr|Jahre"),
        "verb": both("you had lived at your present address for {change}",
                     "Ihre Wohndauer an der jetzigen Adresse {change} betrüge"),
        "fact": both("You have lived at your present address for {value}",
                     "Ihre Wohndauer an der jetzigen Adresse beträgt {value}"),
    },
    "property": {
        "label": both("the most valuable asset", "der wertvollste Besitz"),
        "values": {
            "building savings or life insurance": value(
                both("building savings plan or life insurance", "Bausparvertrag oder Lebensversicherung"),
                both("Your most valuable asset is a building savings plan or a life insurance policy",
                     "Ihr wertvollster Besitz ist ein Bausparvertrag oder eine Lebensversicherung"),
                both("your most valuable asset were a building savings plan or a life insurance policy {instead}",
                     "Ihr wertvollster Besitz ein Bausparvertrag oder eine Lebensversicherung {instead} wäre"),
                both("instead of a building savings plan or a life insurance policy",
                     "statt eines Bausparvertrags oder einer Lebensversicherung"),
            ),
            "car or other": value(
                both("car or the like", "Auto oder Ähnliches"),
                both("Your most valuable asset is a car or the like",
                     "Ihr wertvollster Besitz ist ein Auto oder Ähnliches"),
                both("your most valuable asset were a car or the like {instead}",
                     "Ihr wertvollster Besitz ein Auto oder Ähnliches {instead} wäre"),
                both("instead of a car or the like", "statt eines Autos oder dergleichen"),
            ),
            "real estate": value(
                both("real estate", "Immobilie"),
                both("Your most valuable asset is real estate", "Ihr wertvollster Besitz ist eine Immobilie"),
                both("your most valuable asset were real estate {instead}",
                     "Ihr wertvollster Besitz eine Immobilie {instead} wäre"),
                both("instead of real estate", "statt einer Immobilie"),
            ),
            "unknown or no property": value(
                both("none known", "keiner bekannt"),
                both("We know of no valuable assets of yours", "Uns ist kein wertvoller Besitz von Ihnen bekannt"),
                both("we knew of no valuable assets of yours", "uns kein wertvoller Besitz von Ihnen bekannt wäre"),
                NOTHING,
            ),
        },
    },
    "age": AGE,
    "other_instalment_plans": {
        "label": both("the other instalment plans", "die weiteren Ratenzahlungen"),
        "values": {
            "bank": value(
                both("to a bank", "an eine Bank"),
                both("You also pay instalments to a bank", "Sie zahlen außerdem Raten an eine Bank"),
                both("you also paid instalments to a bank {instead}",
                     "Sie außerdem Raten an eine Bank {instead} zahlten"),
                both("instead of to a bank", "statt an eine Bank"),
            ),
            "no plan": value(
                both("none", "keine"),
                both("You pay no other instalments", "Sie zahlen keine weiteren Raten"),
                both("you had no other instalments to pay", "Sie keine weiteren Raten zu zahlen hätten"),
                NOTHING,
            ),
            "stores": value(
                both("to a store", "an ein Geschäft"),
                both("You also pay instalments to a store", "Sie zahlen außerdem Raten an ein Geschäft"),
                both("you also paid instalments to a store {instead}",
                     "Sie außerdem Raten an ein Geschäft {instead} zahlten"),
                both("instead of to a store", "statt an ein Geschäft"),
            ),
        },
    },
    "housing": {
        "label": both("the home", "die Wohnung"),
        "values": {
            "free": value(
                both("rent-free", "mietfrei"),
                both("You live rent-free", "Sie wohnen mietfrei"),
                both("you lived rent-free {instead}", "Sie mietfrei {instead} wohnten"),
                both("instead of rent-free", "statt mietfrei"),
            ),
            "own": value(
                both("owned", "Eigentum"),
                both("You own your home", "Sie wohnen in Wohneigentum"),
                both("you lived in a home of your own {instead}", "Sie in Wohneigentum {instead} wohnten"),
                both("instead of in a home of your own", "statt in Wohneigentum"),
            ),
            "rent": value(
                both("rented", "gemietet"),
                both("You rent your home", "Sie wohnen zur Miete"),
                both("you lived in a rented home {instead}", "Sie zur Miete {instead} wohnten"),
                both("instead of in a rented home", "statt zur Miete"),
            ),
        },
    },
    "existing_credits": {
        "label": both("the number of loans at this bank", "die Zahl der Kredite bei dieser Bank"),
        "verb": both("the number of your loans at this bank were {change}",
                     "die Zahl Ihrer Kredite bei dieser Bank {change} betrüge"),
        "fact": both("The number of your loans at this bank is {value}",
                     "Die Zahl Ihrer Kredite bei dieser Bank beträgt {value}"),
    },
    "job": {
        "label": both("the job", "die Tätigkeit"),
        "values": {
            **filled(
                both("you worked * {instead}", "Sie * {instead} arbeiteten"),
                both("You work *", "Sie arbeiten *"),
                both("instead of *", "statt *"),
                {
                    "management or self-employed": (
                        both("managerial or self-employed", "leitend oder selbständig"),
                        both("in management or for yourself", "in leitender Stellung oder selbständig"),
                    ),
                    "skilled or official": (
                        both("skilled employee or official", "Fachkraft oder im öffentlichen Dienst"),
                        both("as a skilled employee or official", "als Fachkraft oder im öffentlichen Dienst"),
                    ),
                    "unskilled resident": (
                        both("unskilled", "ungelernt"),
                        both("as an unskilled worker", "als ungelernte Kraft"),
                    ),
                },
            ),
            "unemployed or unskilled non-resident": value(
                both("none, or unskilled without permanent residence", "keine, oder ungelernt ohne ständigen Wohnsitz"),
                both("You have no job, or work as an unskilled worker without permanent residence",
                     "Sie haben keine Arbeit oder sind ungelernt und ohne ständigen Wohnsitz"),
                both("you had no job, or worked as an unskilled worker without permanent residence",
                     "Sie keine Arbeit hätten oder ungelernt und ohne ständigen Wohnsitz wären"),
                NOTHING,
            ),
        },
    },
    "people_supported": {
        "label": both("the number of dependants", "die Zahl der Unterhaltsberechtigten"),
        "verb": both("the number of your dependants were {change}",
                     "die Zahl der Personen, für die Sie Unterhalt leisten, {change} betrüge"),
        "fact": both("The number of your dependants is {value}",
                     "Die Zahl der Personen, für die Sie Unterhalt leisten, beträgt {value}"),
    },
    "telephone": {
        "label": both("the telephone", "das Telefon"),
        "values": {
            "no": value(
                both("not registered", "nicht angemeldet"),
                both("No telephone is registered in your name", "Auf Ihren Namen ist kein Telefon angemeldet"),
                both("no telephone were registered in your name", "auf Ihren Namen kein Telefon angemeldet wäre"),
                NOTHING,
            ),
            "yes": value(
                both("registered", "angemeldet"),
                both("A telephone is registered in your name", "Auf Ihren Namen ist ein Telefon angemeldet"),
                both("a telephone were registered in your name", "auf Ihren Namen ein Telefon angemeldet wäre"),
                NOTHING,
            ),
        },
    },
    "foreign_worker": {
        "label": both("foreign worker", "ausländische Arbeitskraft"),
        "values": {
            "no": value(
                both("no", "nein"),
                both("You are not registered as a foreign worker", "Sie gelten nicht als ausländische Arbeitskraft"),
                both("you were not registered as a foreign worker", "Sie nicht als ausländische Arbeitskraft gälten"),
                NOTHING,
            ),
            "yes": value(
                both("yes", "ja"),
                both("You are registered as a foreign worker", "Sie gelten als ausländische Arbeitskraft"),
                both("you were registered as a foreign worker", "Sie als ausländische Arbeitskraft gälten"),
                NOTHING,
            ),
        },
    },
}  # fmt: skip
