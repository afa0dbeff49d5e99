"""Any method as a model: an endpoint that speaks the protocol of OpenAI's clients."""
