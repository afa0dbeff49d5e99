"""The laboratory: long films with known truth, and models of known acuity that see only what they are shown."""
