#include "profile/report.h"

#include "base/json.h"
#include "config/json.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

Json breakdown_json(const TimeBreakdown& breakdown) {
  Json work = Json::object();
  for (WorkClass kind : kWorkClasses) work[std::string(to_string(kind))] = breakdown.of(kind);
  return {{"total", breakdown.total},
          {"work", work},
          {"launch_gaps", breakdown.launch_gaps},
          {"data_wait", breakdown.data_wait},
          {"idle", breakdown.idle},
          {"hidden_communication", breakdown.hidden_communication}};
}

TimeBreakdown breakdown_of(const nlohmann::json& json) {
  TimeBreakdown breakdown{.total = json["total"],
                          .launch_gaps = json["launch_gaps"],
                          .data_wait = json["data_wait"],
                          .idle = json["idle"],
                          .hidden_communication = json["hidden_communication"]};
  for (WorkClass kind : kWorkClasses) breakdown.work[size_t(kind)] = json["work"][std::string(to_string(kind))];
  return breakdown;
}

Json summary_json(const RankSummary& summary) {
  return {{"steps", summary.steps},
          {"seconds", summary.seconds},
          {"plain_seconds", summary.plain_seconds},
          {"unrecorded_seconds", summary.unrecorded_seconds},
          {"breakdown", breakdown_json(summary.breakdown)}};
}

Json kernel_json(const KernelProfile& k) {
  Json json = {{"program", k.program},
               {"kernel", k.label},
               {"output", k.shape},
               {"class", to_string(k.work)},
               {"count", k.count},
               {"flops", k.flops},
               {"bytes", k.bytes},
               {"seconds", k.seconds},
               {"predicted_seconds", k.predicted},
               {"roof_seconds", k.roof},
               {"bound", k.memory_bound ? "memory" : "compute"}};
  if (k.link_bytes > 0) json["link_bytes"] = k.link_bytes;
  if (!k.tensor_cores.empty()) json["tensor_cores"] = k.tensor_cores;
  return json;
}

Json sensors_json(const SensorSummary& s) {
  Json slowdowns = Json::object();
  for (const auto& [reason, share] : s.slowdowns) slowdowns[reason] = share;
  return {{"readings", s.readings},         {"least_mhz", s.least_mhz},   {"mean_mhz", s.mean_mhz},
          {"most_mhz", s.most_mhz},         {"mean_watts", s.mean_watts}, {"most_watts", s.most_watts},
          {"most_celsius", s.most_celsius}, {"slowdowns", slowdowns}};
}

}  // namespace

std::string describe_slowdown(const RankSummary& rank) {
  if (rank.slowdown() >= 0) return fmt::format("observing takes {:+.1f}%", 100 * rank.slowdown());
  return fmt::format("observing takes less than steps differ by ({:+.1f}%)", 100 * rank.slowdown());
}

RankSummary summary_of(const StepProfile& profile) {
  return {.steps = profile.steps,
          .seconds = profile.seconds,
          .plain_seconds = profile.plain_seconds,
          .unrecorded_seconds = profile.unrecorded_seconds,
          .breakdown = profile.breakdown()};
}

std::string to_text(const RankSummary& summary) { return format_json(summary_json(summary)); }

RankSummary rank_summary(std::string_view text) {
  nlohmann::json json = parse_json(text);
  return {.steps = json["steps"],
          .seconds = json["seconds"],
          .plain_seconds = json["plain_seconds"],
          .unrecorded_seconds = json["unrecorded_seconds"],
          .breakdown = breakdown_of(json["breakdown"])};
}

std::array<double, kWorkClasses.size()> predicted_work(const ProfileReport& report) {
  std::array<double, kWorkClasses.size()> seconds{};
  for (const KernelProfile& kernel : report.kernels) seconds[size_t(kernel.work)] += kernel.predicted;
  seconds[size_t(WorkClass::kCommunication)] = report.predicted_exposed_seconds;
  return seconds;
}

std::string profile_json(const ProfileReport& report) {
  Json ranks = Json::array(), kernels = Json::array(), classes = Json::array();
  for (const RankSummary& rank : report.ranks) ranks.push_back(summary_json(rank));
  for (const KernelProfile& kernel : report.kernels) kernels.push_back(kernel_json(kernel));
  for (const OperatorClass& c : operator_classes(report.kernels))
    classes.push_back({{"name", c.name}, {"flops", c.flops}, {"seconds", c.seconds}});
  Json json = {{"command", report.command},
               {"date", report.date},
               {"machine", {{"name", report.target.name}, {"versions", report.versions}}},
               {"config", Json::parse(to_json(report.resolved.settled()))},
               {"predicted_seconds", report.predicted_seconds},
               {"clock", report.clock},
               {"ranks", ranks},
               {"operator_classes", classes},
               {"kernels", kernels}};
  if (report.sensors.readings > 0) json["sensors"] = sensors_json(report.sensors);
  return format_json(json, 2) + "\n";
}

}  // namespace tokamak
