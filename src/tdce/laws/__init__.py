"""Laws: what holds between the columns of a table, found in its rows or given by the user, kept in every answer."""
