"""Answers in words: a catalogue of messages per language, and the speaker that fills them in."""
