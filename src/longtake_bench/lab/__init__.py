"""The laboratory: films with known ground truth, and models that know only their input."""
