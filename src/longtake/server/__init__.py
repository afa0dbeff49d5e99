"""``longtake serve``: an HTTP API and a page on which people watch an answer being found."""
