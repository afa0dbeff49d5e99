"""A method and a backend for longtake, as another package would bring them."""
