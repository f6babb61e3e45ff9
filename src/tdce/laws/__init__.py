"""What every row of a table must keep to, beyond what each of its columns says alone."""
