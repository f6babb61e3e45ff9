"""Constraints between columns: laws that are discovered in a table, rules that a user writes, and how both are kept."""
