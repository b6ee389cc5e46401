#include "checkpoint/event_log.h"

#include "base/error.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Kind = RunEvent::Kind;

namespace {

constexpr std::pair<Kind, std::string_view> kKinds[] = {
    {Kind::kStart, "start"},     {Kind::kSave, "save"},       {Kind::kEnd, "end"},          {Kind::kStop, "stop"},
    {Kind::kFailure, "failure"}, {Kind::kRestart, "restart"}, {Kind::kFallback, "fallback"}};

fs::path events_file(const fs::path& run) { return run / "events.jsonl"; }

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string text_of(const ordered_json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}
double number_of(const ordered_json& object, const char* key) {
  double number = object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0;
  return std::isfinite(number) ? number : 0;
}
int64_t count_of(const ordered_json& object, const char* key) {
  constexpr double kMost = 1e18;
  return int64_t(std::clamp(number_of(object, key), 0., kMost));
}

void add_ranks(const ordered_json& object, std::vector<RunEvent::Rank>& ranks) {
  if (!object.contains("ranks") || !object["ranks"].is_array()) return;
  for (const ordered_json& rank : object["ranks"])
    if (rank.is_object()) ranks.push_back({text_of(rank, "host"), text_of(rank, "device")});
}

// False: no space, no permission.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(size_t(count));
  }
  return true;
}

// False: it cannot be read or changed.
bool drop_torn_line(int fd) {
  off_t size = ::lseek(fd, 0, SEEK_END), end = size;
  for (char last = 0; end > 0; --end)
    if (::pread(fd, &last, 1, end - 1) != 1)
      return false;
    else if (last == '\n')
      break;
  return size >= 0 && (end == size || ::ftruncate(fd, end) == 0);
}

}  // namespace

std::string format_event(const RunEvent& event) {
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return k.first == event.kind; });
  ordered_json object = {{"event", kind->second}, {"time", event.time}, {"step", event.step}};
  if (event.kind == Kind::kSave)
    object.update({{"checkpoint", event.checkpoint},
                   {"seconds", event.seconds},
                   {"stall_seconds", event.stall_seconds},
                   {"bytes", event.bytes},
                   {"step_seconds", event.step_seconds}});
  if (!event.cause.empty()) object["cause"] = event.cause;
  for (const RunEvent::Rank& rank : event.ranks)
    object["ranks"].push_back({{"rank", object["ranks"].size()}, {"host", rank.host}, {"device", rank.device}});
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::optional<RunEvent> parse_event(std::string_view line) {
  ordered_json object = parse_ordered_json(line);
  if (!object.is_object()) return std::nullopt;
  std::string name = text_of(object, "event");
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return k.second == name; });
  if (kind == std::end(kKinds)) return std::nullopt;
  RunEvent event{.kind = kind->first,
                 .time = number_of(object, "time"),
                 .step = count_of(object, "step"),
                 .checkpoint = text_of(object, "checkpoint"),
                 .seconds = number_of(object, "seconds"),
                 .stall_seconds = number_of(object, object.contains("stall_seconds") ? "stall_seconds" : "seconds"),
                 .bytes = count_of(object, "bytes"),
                 .step_seconds = number_of(object, "step_seconds"),
                 .cause = text_of(object, "cause"),
                 .ranks = {}};
  add_ranks(object, event.ranks);
  return event;
}

std::vector<RunEvent> read_events(const fs::path& run) {
  std::vector<RunEvent> events;
  std::string text;
  try {
    if (fs::exists(events_file(run))) text = read_file(events_file(run), kLargeFile);
  } catch (const UserError&) {
    return events;
  }
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (auto event = parse_event(std::string_view(text).substr(begin, end - begin))) events.push_back(*event);
  return events;
}

EventLog::EventLog(const fs::path& run) : path_(events_file(run)) {
  fd_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!fd_.is_open() || !drop_torn_line(fd_.get()))
    warning_ = fmt::format("cannot write {}: {}; the run goes on without it", path_.string(), std::strerror(errno));
}

void EventLog::add(RunEvent event) {
  if (!warning_.empty()) return;
  if (event.time == 0) event.time = wall_seconds();
  if (!write_all(fd_.get(), format_event(event) + "\n") || (::fdatasync(fd_.get()) != 0 && errno != EINVAL))
    warning_ = fmt::format("cannot write {}: {}; the run goes on without it", path_.string(), std::strerror(errno));
}

// Clocks may go back: no time is less than nothing.
Goodput goodput_of(const std::vector<RunEvent>& events, double now) {
  Goodput all;
  auto pass = [&](double from, double to) { all.wall_seconds += std::max(to - from, 0.); };
  bool rests = true;  // as it was asked to
  double last = 0;
  for (const RunEvent& event : events) {
    if (event.kind == Kind::kStart) ++all.starts;
    if (!rests) pass(last, event.time);
    rests = event.kind == Kind::kEnd || event.kind == Kind::kStop;
    last = event.time;
    all.step_seconds += event.step_seconds;
  }
  if (!rests) pass(last, now);
  return all;
}

std::string format_goodput(const Goodput& g) {
  return fmt::format("goodput {:.1f}%: {:.0f} s of saved steps in {:.0f} s, {} start{}", 100 * std::min(g.share(), 1.),
                     g.step_seconds, g.wall_seconds, g.starts, g.starts == 1 ? "" : "s");
}

}  // namespace tokamak
