"""Sends runs to an OpenTelemetry collector through the OpenTelemetry SDK (extra ``otel``).

A run is a trace; steps, model calls and tool calls are its spans. What was asked, shown and
answered is left out. The SDK sends spans in batches from its own thread: a slow or missing
collector never delays a run.

Attributes follow OpenTelemetry's conventions for generative models (``gen_ai.*``, ``error.type``);
``longtake.*`` is what the conventions have no name for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from longtake import __version__
from longtake.errors import MissingExtra
from longtake.tracing.events import (
    Answered,
    ChatCalled,
    Event,
    Failed,
    RunStarted,
    Sink,
    StepBegan,
    StepEnded,
    ToolCalled,
)

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ImportError as error:
    raise MissingExtra("otel", "sending traces to a collector") from error

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.util.types import AttributeValue


def collector_tracer(endpoint: str) -> Tracer:
    """A tracer that sends spans to the collector with this base URL."""
    # not at exit: a missing collector would delay it
    provider = TracerProvider(
        resource=Resource.create({"service.name": "longtake"}), shutdown_on_exit=False
    )
    exporter = OTLPSpanExporter(endpoint.rstrip("/") + "/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
    return provider.get_tracer("longtake", __version__)


class OtelSink(Sink):
    """Turns the events of one run into spans."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._began = time.time()
        self._run = tracer.start_span("run", start_time=self._nanoseconds(0.0))
        self._steps: dict[int | None, Span] = {}

    def handle(self, event: Event) -> None:
        """Begin or end the span that the event stands for."""
        match event:
            case RunStarted():
                self._run.update_name(f"invoke_agent {event.method}")
                self._describe(
                    self._run,
                    {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": event.method},
                )
            case StepBegan():
                self._steps[event.id] = self._start(event.name, event, event.time)
            case StepEnded():
                if span := self._steps.pop(event.step, None):
                    self._end(span, event.time, failed=bool(event.error))
            case ChatCalled():
                began = event.time - event.usage.seconds
                span = self._start(f"chat {event.model}", event, began)
                self._describe(span, _chat_attributes(event))
                self._end(span, event.time, failed=bool(event.error))
            case ToolCalled():
                span = self._start(f"execute_tool {event.name}", event, event.time)
                self._describe(
                    span, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": event.name}
                )
                self._end(span, event.time, failed=bool(event.error))
            case Answered():
                self._describe(
                    self._run,
                    {
                        "longtake.answer.status": event.answer.status,
                        "longtake.answer.confidence": event.answer.confidence,
                        "longtake.answer.citations": len(event.answer.evidence),
                        "longtake.cost_usd": event.usage.cost,
                    },
                )
            case Failed():
                self._fail(self._run)

    def close(self) -> None:
        """End the span of the whole run."""
        self._run.end()

    def _start(self, name: str, event: StepBegan | ChatCalled | ToolCalled, began: float) -> Span:
        parent = self._steps.get(event.parent, self._run)
        context = trace.set_span_in_context(parent)
        return self._tracer.start_span(name, context, start_time=self._nanoseconds(began))

    def _end(self, span: Span, ended: float, *, failed: bool) -> None:
        if failed:
            self._fail(span)
        span.end(self._nanoseconds(ended))

    def _fail(self, span: Span) -> None:
        # without the message: it may quote what was asked
        span.set_attribute("error.type", "error")
        span.set_status(trace.StatusCode.ERROR)

    def _describe(self, span: Span, attributes: dict[str, AttributeValue | None]) -> None:
        known = {name: value for name, value in attributes.items() if value is not None}
        span.set_attributes(known)

    def _nanoseconds(self, since_start: float) -> int:
        return round((self._began + since_start) * 1e9)


def _chat_attributes(event: ChatCalled) -> dict[str, AttributeValue | None]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": event.model,
        "gen_ai.usage.input_tokens": event.usage.tokens_in,
        "gen_ai.usage.output_tokens": event.usage.tokens_out,
        "gen_ai.usage.cache_read.input_tokens": event.usage.tokens_cached,
        "gen_ai.response.finish_reasons": (event.finish,),
        "longtake.frames": event.usage.frames,
        "longtake.prompt": event.prompt,
        "longtake.reply_cached": event.cached,
        "longtake.cost_usd": event.usage.cost,
    }
