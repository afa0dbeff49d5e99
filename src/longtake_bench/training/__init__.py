"""Training of the retrieval head, which scores clips against texts (needs the extra ``train``)."""
