"""Runs as spans for an OpenTelemetry collector."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from longtake.errors import MissingExtra
from longtake.tracing.events import Answered, ChatCalled, RunStarted, Stream, ToolCalled, emit, step
from longtake.tracing.otel import OtelSink, collector_tracer
from longtake.types import Answer, Usage


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


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    run(OtelSink(provider.get_tracer("longtake")))
    return {span.name: span for span in exporter.get_finished_spans()}


def test_a_run_is_a_trace_of_nested_spans(spans):
    root, look = spans["invoke_agent uniform"], spans["look"]
    assert root.parent is None
    assert look.parent.span_id == root.context.span_id
    assert spans["chat m"].parent.span_id == look.context.span_id
    assert spans["execute_tool zoom"].status.status_code == StatusCode.ERROR
    assert len({span.context.trace_id for span in spans.values()}) == 1
    chat = spans["chat m"]
    assert chat.attributes["gen_ai.usage.input_tokens"] == 10
    assert "longtake.cost_usd" not in chat.attributes
    assert chat.end_time - chat.start_time == pytest.approx(0.5e9, rel=1e-3)


def test_spans_hold_no_content(spans):
    assert "secret" not in "".join(span.to_json() for span in spans.values())


def test_spans_reach_a_collector():
    received = []
    arrived = threading.Event()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()
            arrived.set()

        def log_message(self, *rest):
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        run(OtelSink(collector_tracer(f"http://127.0.0.1:{server.server_port}/")))
        assert arrived.wait(10)
        server.shutdown()
    path, body = received[0]
    assert path == "/v1/traces"
    assert b"execute_tool zoom" in body


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "longtake.tracing.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtra, match=r"longtake\[otel\]"):
        import longtake.tracing.otel  # noqa: F401
