"""The methods: each one module that reads beside its paper. They are strangers to one another."""
