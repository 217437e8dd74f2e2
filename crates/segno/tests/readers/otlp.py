"""Reads what segno sends as OTLP/HTTP in JSON, with the message types that OpenTelemetry itself publishes, and says what is in it.

Standard input has a line of JSON for each request: {"path": ..., "body": ...}. A member or a value that the types do not know is an
error."""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

metrics, spans = {}, []


def as_base64(value):
    # In OTLP ids are hexadecimal; JSON of protocol buffers in general has bytes in base64.
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("traceId", "spanId", "parentSpanId"):
                value[key] = base64.b64encode(bytes.fromhex(inner)).decode()
            else:
                as_base64(inner)
    elif isinstance(value, list):
        for inner in value:
            as_base64(inner)


def attributes(of):
    return {it.key: getattr(it.value, it.value.WhichOneof("value")) for it in of}


for line in sys.stdin:
    said = json.loads(line)
    body = said["body"]
    if said["path"].endswith("/v1/metrics"):
        request = json_format.ParseDict(body, ExportMetricsServiceRequest())
        for resource in request.resource_metrics:
            for metric in resource.scope_metrics[0].metrics:
                kind = metric.WhichOneof("data")
                points = getattr(metric, kind).data_points
                for point in points:
                    assert point.time_unix_nano > 0 and point.start_time_unix_nano <= point.time_unix_nano
                    if kind == "histogram":
                        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                        assert sum(point.bucket_counts) == point.count
                metrics[metric.name] = {"kind": kind, "unit": metric.unit, "points": len(points)}
    else:
        as_base64(body)
        request = json_format.ParseDict(body, ExportTraceServiceRequest())
        for resource in request.resource_spans:
            assert attributes(resource.resource.attributes)["service.name"] == "segno"
            for span in resource.scope_spans[0].spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8)
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                spans.append({"name": span.name, "root": not span.parent_span_id, "attributes": attributes(span.attributes)})

print(json.dumps({"metrics": metrics, "spans": spans}))
