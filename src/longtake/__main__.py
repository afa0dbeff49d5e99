"""``python -m longtake``."""

from longtake.cli import main

main()
