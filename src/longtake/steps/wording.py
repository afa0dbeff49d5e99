"""Which words this version puts to models."""

from __future__ import annotations

import hashlib
import json
from functools import cache

from longtake import prompts


@cache
def wording() -> str:
    """Hash of all shipped prompts.

    Traces record it. A request of a run that was recorded under another wording has another hash
    now, so a rerun has to match it by what it holds.
    """
    with prompts.override(None):
        text = json.dumps(prompts.digests(), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
