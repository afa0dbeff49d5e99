"""Attribute names of OpenTelemetry's conventions for generative models.

The conventions still move, so every name that we use is here and nowhere else.
"""

from __future__ import annotations

OPERATION = "gen_ai.operation.name"
MODEL = "gen_ai.request.model"
TOKENS_IN = "gen_ai.usage.input_tokens"
TOKENS_OUT = "gen_ai.usage.output_tokens"
TOKENS_CACHED = "gen_ai.usage.cache_read.input_tokens"
FINISH = "gen_ai.response.finish_reasons"
TOOL = "gen_ai.tool.name"
AGENT = "gen_ai.agent.name"
ERROR = "error.type"

# ours, for what the conventions have no name for
PROMPT = "longtake.prompt"
CACHED = "longtake.reply_cached"
COST = "longtake.cost_usd"
FRAMES = "longtake.frames"
STATUS = "longtake.answer.status"
CONFIDENCE = "longtake.answer.confidence"
CITATIONS = "longtake.answer.citations"
QUESTION = "longtake.question"
REPLY = "longtake.reply"
