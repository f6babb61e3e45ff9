"""The reproduction of the paper: its benchmark, its figures and its theorem (`pip install 'tdce[paper]'`).

A package of its own beside `tdce`. It uses the library; nothing in the library uses it but the commands `tdce bench`
and `tdce figures`.
"""
