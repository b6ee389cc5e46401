#include "profile/trace.h"

#include "base/error.h"
#include "base/json.h"
#include "base/output_file.h"
#include "plan/print_plan.h"
#include "profile/arena_use.h"
#include "profile/gzip.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

// Threads of a rank's process in the trace. Perfetto takes thread 0 for the one that has the process's number, which is
// the rank's: so none of them is small.
constexpr int kStreams = 1000, kHostSteps = 1100, kHostData = 1101, kDataWorkers = 1110;

struct Event {
  double begin;  // seconds
  Json json;
};

class TraceWriter {
 public:
  TraceWriter(const StepProfile& profile, int64_t rank, double offset)
      : profile_(profile), rank_(rank), offset_(offset) {}

  std::vector<std::string> write(const TraceLimits& limits) {
    double until = end_of_steps(limits.steps);
    for (const RecordedWork& work : profile_.works)
      if (work.begin < until) add(work);
    for (const Span& wait : profile_.data_waits)
      if (wait.begin < until) add_span(kHostData, "wait for data", "data wait", wait.begin, wait.end, {});
    for (const WorkerSpan& made : profile_.workers)
      if (made.begin < until) add_span(kDataWorkers + made.worker, "make a batch", "data", made.begin, made.end, {});
    for (const TimedReading& reading : profile_.sensors)
      if (reading.at < until) add_sensors(reading);
    std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return a.begin < b.begin; });
    auto left_out = std::max<int64_t>(int64_t(events_.size()) - limits.events, 0);
    events_.resize(events_.size() - size_t(left_out));
    return lines(left_out);
  }

 private:
  // The begin of the first run behind so many steps, each of which has as many runs.
  double end_of_steps(int64_t steps) const {
    std::vector<double> runs;
    for (const RecordedWork& work : profile_.works)
      if (work.kind == Work::Kind::kRun) runs.push_back(work.begin);
    size_t next = runs.size() / size_t(std::max<int64_t>(profile_.steps, 1)) * size_t(steps);
    return next < runs.size() ? runs[next] : profile_.seconds;
  }

  void add(const RecordedWork& work) {
    switch (work.kind) {
      case Work::Kind::kRun:
        return add_span(kHostSteps, work.plan->graph.name(), "run", work.asked, work.asked_until, {});
      case Work::Kind::kLaunch: return add_launch(work);
      case Work::Kind::kInput: return add_work(work, "input " + work.name, {{"bytes", work.bytes}});
      case Work::Kind::kCopyBack: return add_work(work, "copy", {{"bytes", work.bytes}});
      case Work::Kind::kTransfer: return add_work(work, "transfer " + work.name, {{"bytes", work.bytes}});
    }
  }

  void add_launch(const RecordedWork& work) {
    const Launch& launch = work.plan->launches[size_t(work.index)];
    const Node& node = work.node();
    Json more = {{"program", work.plan->graph.name()},
                 {"output", node.outputs.empty() ? "" : to_string(work.plan->graph.type(node.outputs[0]))},
                 {"flops", launch.cost.flops},
                 {"bytes", launch.cost.bytes},
                 {"predicted_us", 1e6 * launch.seconds}};
    if (node.op->together)
      more.update({{"axis", node.attrs.get_string("axis")},
                   {"tensors", node.inputs.size()},
                   {"sent_bytes", launch.cost.link_bytes}});
    add_work(work, kernel_label(node), more);
    auto& use = arenas_[work.plan];
    if (use.empty()) use = arena_use(*work.plan);
    add_counter("arena", work.begin, {{"MiB", double(use[size_t(launch.node)]) / double(1 << 20)}});
  }

  // On its stream, and where that works by itself also on the host, when it was asked for.
  void add_work(const RecordedWork& work, const std::string& name, const Json& more) {
    std::vector<ActivitySpan> spans;
    add_spans(work, spans);
    streams_[work.stream] = work.plan && size_t(work.stream) < work.plan->streams.size()
                                ? work.plan->streams[size_t(work.stream)].name
                                : "transfers";
    for (size_t i = 0; i < spans.size(); ++i) {
      Json with_kernel = more;
      if (!work.kernels.empty()) with_kernel["kernel"] = work.kernels[i].name;
      add_span(kStreams + work.stream, name, std::string(to_string(spans[i].work)), spans[i].begin, spans[i].end,
               with_kernel);
    }
    if (work.asked != work.begin) add_span(kHostSteps, name, "asked for", work.asked, work.asked_until, {});
  }

  int64_t nanoseconds(double at) const { return std::llround(1e9 * (at + offset_)); }
  double microseconds(double at) const { return double(nanoseconds(at)) / 1e3; }

  void add_span(int thread, const std::string& name, const std::string& kind, double begin, double end,
                const Json& more) {
    Json json = {{"ph", "X"},
                 {"pid", rank_},
                 {"tid", thread},
                 {"ts", microseconds(begin)},
                 {"dur", double(std::max<int64_t>(nanoseconds(end) - nanoseconds(begin), 0)) / 1e3},
                 {"name", name},
                 {"cat", kind}};
    if (!more.empty()) json["args"] = more;
    events_.push_back({begin, std::move(json)});
  }

  void add_counter(const std::string& name, double at, const Json& values) {
    events_.push_back({at, {{"ph", "C"}, {"pid", rank_}, {"ts", microseconds(at)}, {"name", name}, {"args", values}}});
  }

  void add_sensors(const TimedReading& timed) {
    add_counter("clock", timed.at, {{"MHz", timed.reading.clock_mhz}});
    add_counter("power", timed.at, {{"W", timed.reading.watts}});
  }

  Json named(const std::string& what, int thread, const std::string& name) const {
    return {{"ph", "M"}, {"pid", rank_}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}};
  }

  std::vector<std::string> lines(int64_t left_out) const {
    std::string note = left_out > 0 ? fmt::format(" (the last {} events are left out)", left_out) : "";
    std::vector<std::string> lines{format_json(named("process_name", 0, fmt::format("rank {}{}", rank_, note)))};
    for (const auto& [stream, name] : streams_)
      lines.push_back(format_json(named("thread_name", kStreams + stream, "stream " + name)));
    lines.push_back(format_json(named("thread_name", kHostSteps, "host: steps")));
    lines.push_back(format_json(named("thread_name", kHostData, "host: data")));
    std::set<int> workers;
    for (const WorkerSpan& made : profile_.workers) workers.insert(made.worker);
    for (int worker : workers)
      lines.push_back(format_json(named("thread_name", kDataWorkers + worker, fmt::format("data worker {}", worker))));
    for (const Event& event : events_) lines.push_back(format_json(event.json));
    return lines;
  }

  const StepProfile& profile_;
  int64_t rank_;
  double offset_;
  std::vector<Event> events_;
  std::map<int, std::string> streams_;
  std::map<const Plan*, std::vector<int64_t>> arenas_;
};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// By how much this rank's clock began later than that of the first rank to begin on its machine. Never negative:
// Perfetto drops what happens before 0.
double clock_offset(const StepProfile& profile, const MeshRanks& ranks) {
  Json mine = {{"host", host_name()}, {"start", profile.start_seconds}};
  double first = profile.start_seconds;
  for (const std::string& text : ranks.world().exchange(format_json(mine)))
    if (nlohmann::json other = parse_json(text); other["host"] == mine["host"])
      first = std::min(first, other["start"].get<double>());
  return profile.start_seconds - first;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : ",\n") + line;
  return text;
}

}  // namespace

std::vector<std::string> trace_events(const StepProfile& profile, int64_t rank, double offset,
                                      const TraceLimits& limits) {
  return TraceWriter(profile, rank, offset).write(limits);
}

std::vector<std::string> gather_trace(const StepProfile& profile, const MeshRanks* ranks, const TraceLimits& limits) {
  if (!ranks) return {joined(trace_events(profile, 0, 0, limits))};
  return ranks->world().exchange(joined(trace_events(profile, ranks->rank(), clock_offset(profile, *ranks), limits)));
}

std::string format_trace(const std::vector<std::string>& events, const std::string& command) {
  return fmt::format("{{\"displayTimeUnit\": \"ms\",\n\"otherData\": {},\n\"traceEvents\": [\n{}\n]}}\n",
                     format_json(Json{{"command", command}}), joined(events));
}

void check_trace_file(const std::filesystem::path& file) {
  std::string name = file.string();
  bool packed = name.ends_with(".json.gz");
  if (packed ? has_gzip() : name.ends_with(".json")) return;
  user_error("[--trace] expected a file that ends in .json{}, got {}", has_gzip() ? " or .json.gz" : "", name);
}

void write_trace(const std::filesystem::path& file, const std::string& text) {
  write_output_file(file, file.extension() == ".gz" ? gzip(text) : text);
}

}  // namespace tokamak
