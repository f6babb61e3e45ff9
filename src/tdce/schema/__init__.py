"""What is known about a table: its columns, the constraints between them (laws discovered in the table, rules written
by the user), its pass-through columns, its encoding as a tensor, and the feasible set of each row."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
