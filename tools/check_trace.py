#!/usr/bin/env python3
"""Asks Perfetto's trace processor what it reads in a trace of `tokamak profile`: every span, on its rank and thread, and
no error of the import. Ends with 77 where the package perfetto, or the program that it downloads, is not to be had.

  tools/check_trace.py step.json.gz

TRACE_PROCESSOR may name that program (trace_processor_shell).
"""
import gzip
import json
import os
import subprocess
import sys

SKIP = 77


def open_processor(path):
    try:
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    except ImportError:
        sys.exit(skip("the package perfetto is not installed"))
    config = TraceProcessorConfig(bin_path=os.environ.get("TRACE_PROCESSOR"))
    try:
        return TraceProcessor(trace=path, config=config)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(skip(f"the trace processor is not to be had: {error}"))


def skip(why):
    print(f"skipped: {why}")
    return SKIP


def count(processor, query):
    return next(iter(processor.query(query))).n


def main(path):
    raw = open(path, "rb").read()
    events = json.loads(gzip.decompress(raw) if path.endswith(".gz") else raw)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    counters = [event for event in events if event["ph"] == "C"]
    ranks = {event["pid"] for event in events}
    processor = open_processor(path)
    checks = {
        "spans": (count(processor, "select count(*) as n from slice"), len(spans)),
        "counter values": (count(processor, "select count(*) as n from counter"), len(counters)),
        "ranks": (count(processor, "select count(*) as n from process where name like 'rank %'"), len(ranks)),
        "collectives with sizes": (
            count(processor, "select count(distinct arg_set_id) as n from args where flat_key = 'args.sent_bytes'"),
            sum("sent_bytes" in event.get("args", {}) for event in spans)),
        "errors": (count(processor, "select coalesce(sum(value), 0) as n from stats where severity = 'error'"), 0),
    }
    bad = [f"{what}: expected {expected}, Perfetto reads {found}" for what, (found, expected) in checks.items()
           if found != expected]
    print("\n".join(bad) if bad else f"trace: ok, {len(spans)} spans of {len(ranks)} ranks")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
