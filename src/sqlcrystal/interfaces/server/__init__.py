"""The service: HTTP over `Crystal`, with tokens, limits, metrics, a chat door and the web page."""
