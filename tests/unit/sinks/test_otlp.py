"""Spans for a collector."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from longtake.events import Answered, ChatCalled, RunStarted, Stream, ToolCalled, emit, step
from longtake.sinks.otlp import OtlpSink, Sender
from longtake.types import Answer, Usage


class Collected(list):
    """Stands in for the sender."""

    send = list.append


def run(sink):
    stream = Stream(sink)
    with stream.active():
        emit(RunStarted(method="uniform", question="a secret question"))
        with step("look"):
            usage = Usage(1, 10, 2, 3, 4, 0.5, None)
            emit(ChatCalled(model="m", prompt="p/q", reply="a secret reply", usage=usage))
            emit(ToolCalled(name="zoom", error="a secret error"))
        emit(Answered(answer=Answer(text="a secret answer", confidence=0.5)))
    stream.close()


def attributes(span):
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_a_run_is_a_trace_of_nested_spans():
    spans = Collected()
    run(OtlpSink(spans))
    by_name = {span["name"]: span for span in spans}
    root, look = by_name["invoke_agent uniform"], by_name["look"]
    assert root["parentSpanId"] == ""
    assert look["parentSpanId"] == root["spanId"]
    assert by_name["chat m"]["parentSpanId"] == look["spanId"]
    assert by_name["execute_tool zoom"]["status"]["code"] == 2
    assert len({span["traceId"] for span in spans}) == 1
    facts = attributes(by_name["chat m"])
    assert facts["gen_ai.usage.input_tokens"] == "10"
    assert "longtake.cost_usd" not in facts


@pytest.mark.parametrize("content", [False, True])
def test_content_is_left_out_unless_it_is_wanted(content):
    spans = Collected()
    run(OtlpSink(spans, content=content))
    said = json.dumps(spans)
    assert ("a secret question" in said) is content
    assert ("a secret reply" in said) is content
    assert "a secret error" not in said


def test_spans_reach_a_collector():
    received = []
    arrived = threading.Event()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()
            arrived.set()

        def log_message(self, *rest):
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run(OtlpSink(Sender(f"http://127.0.0.1:{server.server_port}")))
    assert arrived.wait(5)
    server.shutdown()
    spans = received[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert {span["name"] for span in spans} >= {"look", "chat m"}
