"""Evidence: a record of what was asked, by what, and what was answered, in lines that hang together by their hashes."""
