"""The mathematics of the methods: arrays in, arrays out."""
