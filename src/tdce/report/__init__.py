"""Answers for people: sentences and a page."""
