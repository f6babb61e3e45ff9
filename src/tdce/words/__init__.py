"""What people read, in their language: one catalogue of messages per language, and a speaker who fills them in."""
