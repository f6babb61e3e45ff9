"""Words of Adult, the census table of incomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tdce.datasets.wording.forms import AGE, Text, both, filled, value

DOLLARS = both("dollar|dollars", "Dollar|Dollar")

ADULT_OUTCOMES: Mapping[str, Any] = {
    ">50K": {
        "name": both("more than 50,000 dollars", "mehr als 50.000 Dollar"),
        "fact": both("your yearly income is estimated at more than 50,000 dollars",
                     "Ihr Jahreseinkommen wird auf mehr als 50.000 Dollar geschätzt"),
        "refusal": both("your yearly income is not estimated at more than 50,000 dollars",
                        "Ihr Jahreseinkommen wird nicht auf mehr als 50.000 Dollar geschätzt"),
        "clause": both("your yearly income would be estimated at more than 50,000 dollars",
                       "Ihr Jahreseinkommen würde auf mehr als 50.000 Dollar geschätzt"),
    },
    "<=50K": {
        "name": both("at most 50,000 dollars", "höchstens 50.000 Dollar"),
        "fact": both("your yearly income is estimated at 50,000 dollars at most",
                     "Ihr Jahreseinkommen wird auf höchstens 50.000 Dollar geschätzt"),
        "refusal": both("your yearly income is estimated at more than 50,000 dollars",
                        "Ihr Jahreseinkommen wird auf mehr als 50.000 Dollar geschätzt"),
        "clause": both("your yearly income would be estimated at 50,000 dollars at most",
                       "Ihr Jahreseinkommen würde auf höchstens 50.000 Dollar geschätzt"),
    },
}  # fmt: skip


COUNTRIES: Mapping[str, tuple[str, str, str]] = {  # in English after "from", in German, and in German after "aus"
    "Cambodia": ("Cambodia", "Kambodscha", "Kambodscha"),
    "Canada": ("Canada", "Kanada", "Kanada"),
    "China": ("China", "China", "China"),
    "Columbia": ("Colombia", "Kolumbien", "Kolumbien"),
    "Cuba": ("Cuba", "Kuba", "Kuba"),
    "Dominican-Republic": ("the Dominican Republic", "Dominikanische Republik", "der Dominikanischen Republik"),
    "Ecuador": ("Ecuador", "Ecuador", "Ecuador"),
    "El-Salvador": ("El Salvador", "El Salvador", "El Salvador"),
    "England": ("England", "England", "England"),
    "France": ("France", "Frankreich", "Frankreich"),
    "Germany": ("Germany", "Deutschland", "Deutschland"),
    "Greece": ("Greece", "Griechenland", "Griechenland"),
    "Guatemala": ("Guatemala", "Guatemala", "Guatemala"),
    "Haiti": ("Haiti", "Haiti", "Haiti"),
    "Holand-Netherlands": ("the Netherlands", "Niederlande", "den Niederlanden"),
    "Honduras": ("Honduras", "Honduras", "Honduras"),
    "Hong": ("Hong Kong", "Hongkong", "Hongkong"),
    "Hungary": ("Hungary", "Ungarn", "Ungarn"),
    "India": ("India", "Indien", "Indien"),
    "Iran": ("Iran", "Iran", "dem Iran"),
    "Ireland": ("Ireland", "Irland", "Irland"),
    "Italy": ("Italy", "Italien", "Italien"),
    "Jamaica": ("Jamaica", "Jamaika", "Jamaika"),
    "Japan": ("Japan", "Japan", "Japan"),
    "Laos": ("Laos", "Laos", "Laos"),
    "Mexico": ("Mexico", "Mexiko", "Mexiko"),
    "Nicaragua": ("Nicaragua", "Nicaragua", "Nicaragua"),
    "Outlying-US(Guam-USVI-etc)": ("an outlying territory of the United States", "Außengebiet der Vereinigten Staaten",
                                   "einem Außengebiet der Vereinigten Staaten"),
    "Peru": ("Peru", "Peru", "Peru"),
    "Philippines": ("the Philippines", "Philippinen", "den Philippinen"),
    "Poland": ("Poland", "Polen", "Polen"),
    "Portugal": ("Portugal", "Portugal", "Portugal"),
    "Puerto-Rico": ("Puerto Rico", "Puerto Rico", "Puerto Rico"),
    "Scotland": ("Scotland", "Schottland", "Schottland"),
    "South": ("South Korea", "Südkorea", "Südkorea"),
    "Taiwan": ("Taiwan", "Taiwan", "Taiwan"),
    "Thailand": ("Thailand", "Thailand", "Thailand"),
    "Trinadad&Tobago": ("Trinidad and Tobago", "Trinidad und Tobago", "Trinidad und Tobago"),
    "United-States": ("the United States", "Vereinigte Staaten", "den Vereinigten Staaten"),
    "Vietnam": ("Vietnam", "Vietnam", "Vietnam"),
    "Yugoslavia": ("Yugoslavia", "Jugoslawien", "Jugoslawien"),
}  # fmt: skip

EDUCATION: Mapping[str, tuple[str, str, str, str]] = {  # its name, with an article; German, after "statt"
    "Preschool": ("preschool", "preschool", "die Vorschule", "der Vorschule"),
    "1st-4th": ("1st to 4th grade", "the 1st to 4th grade", "die 1. bis 4. Klasse", "der 1. bis 4. Klasse"),
    "5th-6th": ("5th to 6th grade", "the 5th to 6th grade", "die 5. bis 6. Klasse", "der 5. bis 6. Klasse"),
    "7th-8th": ("7th to 8th grade", "the 7th to 8th grade", "die 7. bis 8. Klasse", "der 7. bis 8. Klasse"),
    "9th": ("9th grade", "the 9th grade", "die 9. Klasse", "der 9. Klasse"),
    "10th": ("10th grade", "the 10th grade", "die 10. Klasse", "der 10. Klasse"),
    "11th": ("11th grade", "the 11th grade", "die 11. Klasse", "der 11. Klasse"),
    "12th": ("12th grade without a diploma", "the 12th grade without a diploma", "die 12. Klasse ohne Abschluss",
             "der 12. Klasse ohne Abschluss"),
    "HS-grad": ("high-school diploma", "a high-school diploma", "ein Highschool-Abschluss",
                "eines Highschool-Abschlusses"),
    "Some-college": ("some college", "some college without a degree", "ein Studium ohne Abschluss",
                     "eines Studiums ohne Abschluss"),
    "Assoc-voc": ("vocational associate degree", "a vocational associate degree",
                  "ein berufsbildender College-Abschluss", "eines berufsbildenden College-Abschlusses"),
    "Assoc-acdm": ("academic associate degree", "an academic associate degree",
                   "ein allgemeinbildender College-Abschluss", "eines allgemeinbildenden College-Abschlusses"),
    "Bachelors": ("bachelor’s degree", "a bachelor’s degree", "ein Bachelorabschluss", "eines Bachelorabschlusses"),
    "Masters": ("master’s degree", "a master’s degree", "ein Masterabschluss", "eines Masterabschlusses"),
    "Prof-school": ("professional degree", "a professional degree",
                    "ein medizinischer, juristischer oder ähnlicher Abschluss",
                    "eines medizinischen, juristischen oder ähnlichen Abschlusses"),
    "Doctorate": ("doctorate", "a doctorate", "eine Promotion", "einer Promotion"),
}  # fmt: skip


def _education(name: str, english: str, german: str, of: str) -> dict[str, Text]:
    return value(
        both(name, german.split(" ", 1)[1]),
        both(f"Your highest level of education is {english}", f"Ihr höchster Bildungsstand ist {german}"),
        both(f"your highest level of education were {english} {{instead}}",
             f"Ihr höchster Bildungsstand {german} {{instead}} wäre"),
        both(f"instead of {english}", f"statt {of}"),
    )  # fmt: skip


ADULT_WORDS: Mapping[str, Mapping[str, Any]] = {
    "age": AGE,
    "workclass": {
        "label": both("the kind of employer", "die Art des Arbeitgebers"),
        "values": {
            **filled(
                both("you worked * {instead}", "Sie * {instead} arbeiteten"),
                both("You work *", "Sie arbeiten *"),
                both("instead of *", "statt *"),
                {
                    "Federal-gov": (both("federal government", "Bundesbehörde"),
                                    both("for the federal government", "für eine Bundesbehörde")),
                    "Local-gov": (both("local government", "Kommune"),
                                  both("for a local government", "für eine Kommune")),
                    "Private": (both("private", "privat"),
                                both("for a private employer", "für einen privaten Arbeitgeber")),
                    "Self-emp-inc": (both("company of one’s own", "eigene Gesellschaft"),
                                     both("for a company of your own", "für Ihre eigene Gesellschaft")),
                    "Self-emp-not-inc": (both("self-employed, without a company", "selbständig, ohne Gesellschaft"),
                                         both("for yourself and without a company",
                                              "selbständig und ohne eigene Gesellschaft")),
                    "State-gov": (both("state government", "Bundesstaat"),
                                  both("for a state government", "für einen Bundesstaat")),
                    "Without-pay": (both("unpaid", "unbezahlt"), both("without pay", "ohne Bezahlung")),
                },
            ),
            "Never-worked": value(
                both("never worked", "nie gearbeitet"),
                both("You have never worked", "Sie haben noch nie gearbeitet"),
                both("you had never worked", "Sie noch nie gearbeitet hätten"),
                both("instead of never having worked", ""),
            ),
        },
    },
    "final_weight": {
        "label": both("the census weight", "das Zensusgewicht"),
        "verb": both("your census weight were {change}", "Ihr Zensusgewicht {change} betrüge"),
        "fact": both("Your census weight is {value}", "Ihr Zensusgewicht beträgt {value}"),
    },
    "education": {
        "label": both("the highest level of education", "der höchste Bildungsstand"),
        "values": {key: _education(*words) for key, words in EDUCATION.items()},
    },
    "education_num": {
        "label": both("the level of education (1 to 16)", "die Bildungsstufe (1 bis 16)"),
        "verb": both("your level of education on the scale from 1 to 16 were {change}",
                     "Ihre Bildungsstufe auf der Skala von 1 bis 16 bei {change} läge"),
        "fact": both("Your level of education is {value} on a scale from 1 to 16",
                     "Ihre Bildungsstufe liegt auf der Skala von 1 bis 16 bei {value}"),
    },
    "marital_status": {
        "label": both("the marital status", "der Familienstand"),
        "values": {
            **filled(
                both("you were * {instead}", "Sie * {instead} wären"),
                both("You are *", "Sie sind *"),
                both("instead of *", "statt *"),
                {
                    "Divorced": (both("divorced", "geschieden"), both("divorced", "geschieden")),
                    "Married-AF-spouse": (both("married, armed forces", "verheiratet, Streitkräfte"),
                                          both("married to a member of the armed forces",
                                               "mit einem Mitglied der Streitkräfte verheiratet")),
                    "Married-civ-spouse": (both("married", "verheiratet"),
                                           both("married to a civilian", "mit einer Zivilperson verheiratet")),
                    "Married-spouse-absent": (both("married, spouse absent", "verheiratet, Ehepartner abwesend"),
                                              both("married to an absent spouse",
                                                   "mit einer abwesenden Person verheiratet")),
                    "Never-married": (both("single", "ledig"), both("single", "ledig")),
                    "Widowed": (both("widowed", "verwitwet"), both("widowed", "verwitwet")),
                },
            ),
            "Separated": value(
                both("separated", "getrennt lebend"),
                both("You are separated", "Sie leben getrennt"),
                both("you were separated {instead}", "Sie getrennt lebend {instead} wären"),
                both("instead of separated", "statt getrennt lebend"),
            ),
        },
    },
    "occupation": {
        "label": both("the occupation", "der Beruf"),
        "values": filled(
            both("you worked * {instead}", "Sie * {instead} arbeiteten"),
            both("You work *", "Sie arbeiten *"),
            both("instead of *", "statt *"),
            {
                "Adm-clerical": (both("office work", "Büroarbeit"), both("in an office", "im Büro")),
                "Armed-Forces": (both("armed forces", "Streitkräfte"),
                                 both("in the armed forces", "bei den Streitkräften")),
                "Craft-repair": (both("craft or repair", "Handwerk oder Instandsetzung"),
                                 both("in a craft or in repairs", "im Handwerk oder in der Instandsetzung")),
                "Exec-managerial": (both("management", "Management"), both("in management", "im Management")),
                "Farming-fishing": (both("farming or fishing", "Landwirtschaft oder Fischerei"),
                                    both("in farming or fishing", "in der Landwirtschaft oder Fischerei")),
                "Handlers-cleaners": (both("labourer or cleaner", "Hilfs- oder Reinigungskraft"),
                                      both("as a labourer or cleaner", "als Hilfs- oder Reinigungskraft")),
                "Machine-op-inspct": (both("machine operation or inspection", "Bedienung oder Prüfung von Maschinen"),
                                      both("in machine operation or inspection",
                                           "in der Bedienung oder Prüfung von Maschinen")),
                "Other-service": (both("other service job", "anderer Dienstleistungsberuf"),
                                  both("in another service job", "in einem anderen Dienstleistungsberuf")),
                "Priv-house-serv": (both("private household", "Privathaushalt"),
                                    both("in a private household", "in einem Privathaushalt")),
                "Prof-specialty": (both("specialist profession", "akademischer oder spezialisierter Beruf"),
                                   both("in a specialist profession",
                                        "in einem akademischen oder spezialisierten Beruf")),
                "Protective-serv": (both("protective services", "Sicherheits- und Rettungsdienst"),
                                    both("in protective services", "im Sicherheits- und Rettungsdienst")),
                "Sales": (both("sales", "Verkauf"), both("in sales", "im Verkauf")),
                "Tech-support": (both("technical support", "technischer Dienst"),
                                 both("in technical support", "im technischen Dienst")),
                "Transport-moving": (both("transport", "Transportwesen"), both("in transport", "im Transportwesen")),
            },
        ),
    },
    "relationship": {
        "label": both("the place in the household", "die Stellung im Haushalt"),
        "values": filled(
            both("you were recorded * in your household {instead}",
                 "Sie in Ihrem Haushalt * {instead} geführt würden"),
            both("You are recorded * in your household", "Sie werden in Ihrem Haushalt * geführt"),
            both("instead of *", "statt *"),
            {
                "Husband": (both("husband", "Ehemann"), both("as a husband", "als Ehemann")),
                "Not-in-family": (both("not in a family", "ohne Familie"),
                                  both("as a person without a family", "als Person ohne Familie")),
                "Other-relative": (both("other relative", "sonstiges Familienmitglied"),
                                   both("as another relative", "als sonstiges Familienmitglied")),
                "Own-child": (both("child", "Kind"), both("as a child", "als Kind")),
                "Unmarried": (both("unmarried", "unverheiratet"),
                              both("as an unmarried person", "als unverheiratete Person")),
                "Wife": (both("wife", "Ehefrau"), both("as a wife", "als Ehefrau")),
            },
        ),
    },
    "race": {
        "label": both("the race recorded in the census", "die im Zensus erfasste Herkunftsgruppe"),
        "title": both("race in the census", "Herkunftsgruppe im Zensus"),
        "values": filled(
            both("you were recorded as * in the census {instead}", "Sie im Zensus als * {instead} erfasst wären"),
            both("You are recorded as * in the census", "Sie sind im Zensus als * erfasst"),
            both("instead of as *", "statt als *"),
            {
                "Amer-Indian-Eskimo": (both("American Indian or Alaska Native", "indigen (Nordamerika)"),
                                       both("American Indian or Alaska Native", "indigen (Nordamerika)")),
                "Asian-Pac-Islander": (both("Asian or Pacific Islander", "asiatisch oder pazifisch"),
                                       both("Asian or Pacific Islander", "asiatisch oder pazifisch")),
                "Black": (both("Black", "schwarz"), both("Black", "schwarz")),
                "Other": (both("other", "andere"),
                          both("belonging to another group", "einer anderen Gruppe zugehörig")),
                "White": (both("White", "weiß"), both("White", "weiß")),
            },
        ),
    },
    "sex": {
        "label": both("the sex", "das Geschlecht"),
        "values": {
            "Female": value(both("female", "weiblich"), both("You are a woman", "Sie sind eine Frau"),
                            both("you were a woman {instead}", "Sie eine Frau {instead} wären"),
                            both("instead of a woman", "statt einer Frau")),
            "Male": value(both("male", "männlich"), both("You are a man", "Sie sind ein Mann"),
                          both("you were a man {instead}", "Sie ein Mann {instead} wären"),
                          both("instead of a man", "statt eines Mannes")),
        },
    },
    "capital_gain": {
        "label": both("the capital gain", "der Kapitalgewinn"),
        "unit": DOLLARS,
        "verb": both("your capital gain were {change}", "Ihr Kapitalgewinn {change} betrüge"),
        "fact": both("Your capital gain was {value}", "Ihr Kapitalgewinn betrug {value}"),
    },
    "capital_loss": {
        "label": both("the capital loss", "der Kapitalverlust"),
        "unit": DOLLARS,
        "verb": both("your capital loss were {change}", "Ihr Kapitalverlust {change} betrüge"),
        "fact": both("Your capital loss was {value}", "Ihr Kapitalverlust betrug {value}"),
    },
    "hours_per_week": {
        "label": both("the working hours per week", "die Wochenarbeitszeit"),
        "unit": both("hour|hours", "Stunde|Stunden"),
        "verb": both("you worked {after} a week instead of {before}", "Sie {change} in der Woche arbeiteten"),
        "fact": both("You work {value} a week", "Sie arbeiten {value} in der Woche"),
    },
    "native_country": {
        "label": both("the country of origin", "das Herkunftsland"),
        "values": filled(
            both("you came from * {instead}", "Sie aus * {instead} kämen"),
            both("You come from *", "Sie kommen aus *"),
            both("instead of *", "statt aus *"),
            {
                key: (both(english.removeprefix("the ").removeprefix("an "), german), both(english, of))
                for key, (english, german, of) in COUNTRIES.items()
            },
        ),
    },
}  # fmt: skip


def _flag(label: Text, yes: tuple[Text, Text], no: tuple[Text, Text]) -> dict[str, Any]:
    """The words of a column of 0 and 1: a fact and a clause for each."""
    names, nothing = (both("no", "nein"), both("yes", "ja")), both("", "")
    return {
        "label": label,
        "values": {
            str(number): value(name, fact, clause, nothing)
            for number, (name, (fact, clause)) in enumerate(zip(names, (no, yes), strict=True))
        },
    }


ADULT_FLAG_WORDS: dict[str, Mapping[str, Any]] = {
    "married_flag": _flag(
        both("married", "verheiratet"),
        (both("You are married", "Sie sind verheiratet"), both("you were married", "Sie verheiratet wären")),
        (both("You are not married", "Sie sind nicht verheiratet"),
         both("you were not married", "Sie nicht verheiratet wären")),
    ),
    "white_flag": _flag(
        both("recorded as White", "im Zensus als weiß erfasst"),
        (both("You are recorded as White in the census", "Sie sind im Zensus als weiß erfasst"),
         both("you were recorded as White in the census", "Sie im Zensus als weiß erfasst wären")),
        (both("You are not recorded as White in the census", "Sie sind im Zensus nicht als weiß erfasst"),
         both("you were not recorded as White in the census", "Sie im Zensus nicht als weiß erfasst wären")),
    ),
    "male_flag": _flag(
        both("male", "männlich"),
        (both("You are a man", "Sie sind ein Mann"), both("you were a man", "Sie ein Mann wären")),
        (both("You are a woman", "Sie sind eine Frau"), both("you were a woman", "Sie eine Frau wären")),
    ),
    "us_native_flag": _flag(
        both("from the United States", "aus den Vereinigten Staaten"),
        (both("You come from the United States", "Sie kommen aus den Vereinigten Staaten"),
         both("you came from the United States", "Sie aus den Vereinigten Staaten kämen")),
        (both("You do not come from the United States", "Sie kommen nicht aus den Vereinigten Staaten"),
         both("you did not come from the United States", "Sie nicht aus den Vereinigten Staaten kämen")),
    ),
}  # fmt: skip
