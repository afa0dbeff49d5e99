"""Reads Server-Sent Events."""

import json


def read_stream(client, run, **more):
    """The events of a run's stream as (kind, id, data)."""
    found = []
    with client.stream("GET", f"/api/v1/runs/{run}/events", **more) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for block in "".join(response.iter_text()).split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in fields:
                found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found
