"""The mathematics of the methods: pure functions from arrays to arrays."""
