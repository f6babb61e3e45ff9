"""The words of the tables in the package, in English and German: one file per table."""
