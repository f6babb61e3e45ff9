"""The words of the tables inside the package, in English and German: one file a table."""
