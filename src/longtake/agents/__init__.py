"""What methods do with models: ask, fan out, use tools, work in a team."""
