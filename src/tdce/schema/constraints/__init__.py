"""Constraints between columns: laws discovered in a table, rules written by the user, and the repair of both."""
