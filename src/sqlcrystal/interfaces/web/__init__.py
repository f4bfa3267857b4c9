"""The web page: server-rendered, no build step, nothing from elsewhere; forms work without the script."""
