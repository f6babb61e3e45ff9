"""The reproduction of the paper: its benchmark, its figures and its theorem (`pip install 'tdce[paper]'`).

A separate package beside `tdce`. It uses the library; in the library, only the commands `tdce bench` and `tdce figures`
use it.
"""
