"""The studio and the HTTP API: one explainer in memory, asked over HTTP by pages and by programs."""
