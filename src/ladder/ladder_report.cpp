#include "ladder/ladder_report.h"

#include "base/bytes.h"
#include "config/config.h"
#include "config/json.h"
#include "ladder/data_times.h"
#include "model/model.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/json.h"

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLongMs = 100e3;  // of which tenths of seconds are no news

Json machine_json(const LadderReport& report) {
  const Target& target = report.target;
  Json json = {{"name", target.name},
               {"units", target.units},
               {"fp32_gflops", target.f32_flops * 1e-9},
               {"tf32_gflops", target.tf32_flops * 1e-9},
               {"bf16_gflops", target.bf16_flops * 1e-9},
               {"memory_gb_per_second", target.memory_bandwidth * 1e-9},
               {"versions", report.versions}};
  return json;
}

Json model_json(const RunConfig& config) {
  FlopsPerToken flops = flops_per_token(config.model);
  return {{"parameters", count_parameters(config.model)},
          {"multiplied_parameters", flops.multiplied_parameters},
          {"flops_per_token", flops.full},
          {"flops_per_token_causal", flops.causal},
          {"batch", config.train.batch},
          {"context", config.model.context}};
}

// What was measured, or why nothing was.
Json run_json(const RungResult& r) {
  Json json = {{"name", r.name}};
  if (r.planned_bytes > 0)
    json.update({{"precision", precision_name(r.precision)}, {"planned_bytes", r.planned_bytes}});
  if (!r.ran()) {
    json["failure"] = r.failure;
    return json;
  }
  json.update({{"ms", r.ms},
               {"least_ms", r.least_ms},
               {"most_ms", r.most_ms},
               {"predicted_ms", r.predicted_ms},
               {"prediction_error", r.prediction_error()},
               {"tokens_per_second", r.tokens_per_second},
               {"mfu", r.mfu},
               {"mfu_causal", r.mfu_causal},
               {"peak_flops", r.peak.flops},
               {"peak", r.peak.name},
               {"model_gflops", r.model_gflops},
               {"used_bytes", r.used_bytes},
               {"first_step_ms", r.first_step_ms},
               {"micro_batches", r.micro_batches}});
  if (r.joules_per_token > 0) json["joules_per_token"] = r.joules_per_token;
  if (!r.by_reference.empty()) json["by_reference"] = r.by_reference;
  if (!r.products.empty()) json["products"] = r.products;
  if (!r.repeats.empty()) json.update({{"repeats_ms", r.repeats}, {"repeats_before_ms", r.repeats_before}});
  return json;
}

Json rung_json(const RungResult& r, int64_t epoch_tokens) {
  Json json = run_json(r);
  json.update({{"optional", r.optional}, {"kept", r.kept}, {"changed", r.changed}});
  if (r.ran()) json.update({{"speedup_over_previous", r.speedup_step}, {"speedup_over_first", r.speedup_total}});
  if (r.ran()) json["tokens_in_five_minutes"] = tokens_in_short_run(r);
  if (r.ran() && epoch_tokens > 0) json["epoch_hours"] = epoch_hours(r, epoch_tokens);
  return json;
}

Json mesh_json(const MeshResult& m) {
  Json json = run_json(m.run);
  const MeshConfig& mesh = m.rung.mesh;
  json.update({{"ranks", m.ranks},
               {"pipe", mesh.pipe},
               {"data", mesh.data},
               {"context", mesh.context},
               {"tensor", mesh.tensor},
               {"zero", mesh.zero},
               {"sequences", m.sequences}});
  if (!m.run.ran()) return json;
  json["predicted_exposed_ms"] = m.predicted_exposed_ms;
  if (m.exposed_ms) json["exposed_ms"] = *m.exposed_ms;
  if (m.run.speedup_total > 0) json.update({{"speedup_over_one", m.run.speedup_total}, {"efficiency", m.efficiency()}});
  return json;
}

std::string range_of(const std::vector<double>& ms) {
  auto [least, most] = std::minmax_element(ms.begin(), ms.end());
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", median(ms), *least, *most);
}

// A line below a rung that was measured several times.
std::string format_repeats(const RungResult& r) {
  if (r.repeats.empty()) return "";
  return fmt::format("\n  {} times in turns with the rung before: {}, that one {} ms", r.repeats.size(),
                     range_of(r.repeats), range_of(r.repeats_before));
}

// A line below a rung that was measured under load.
std::string format_energy(const RungResult& r) {
  if (r.joules_per_token == 0) return "";
  return fmt::format("\n  {:.3f} mJ a token, {:.0f} W", 1e3 * r.joules_per_token,
                     r.joules_per_token * r.tokens_per_second);
}

}  // namespace

std::string format_ladder_header() {
  return fmt::format("{:<25} {:>8} {:>6} {:>8} {:>5} {:>8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}", "rung", "ms",
                     "spread", "predict", "error", "tokens/s", "x prev", "x 1st", "MFU", "causal", "plan", "used",
                     "first");
}

std::string format_rung(const RungResult& r) {
  if (!r.ran()) return fmt::format("{:<25} {:.94}", r.name, r.failure);
  std::string note = rung_note(r);
  return fmt::format(
      "{:<25} {:>8.2f} {:>5.0f}% {:>8.2f} {:>+4.0f}% {:>8.0f} {:>6.2f} {:>6.2f} {:>5.1f}% {:>5.1f}% {:>6.0f} {:>6.0f} "
      "{:>4.{}f}s{}{}{}",
      r.name, r.ms, 100 * r.spread(), r.predicted_ms, 100 * r.prediction_error(), r.tokens_per_second, r.speedup_step,
      r.speedup_total, 100 * r.mfu, 100 * r.mfu_causal, double(r.planned_bytes) / kMiB, double(r.used_bytes) / kMiB,
      r.first_step_ms * 1e-3, r.first_step_ms < kLongMs ? 1 : 0, note.empty() ? "" : " " + note, format_repeats(r),
      format_energy(r));
}

std::string rung_note(const RungResult& r) {
  if (!r.ran()) return "";
  if (r.optional) return "aside";
  if (!r.changed) return "same";
  return r.kept ? "" : "slower";
}

std::vector<std::string> peak_names(const std::vector<RungResult>& rungs) {
  std::vector<std::string> names;
  for (const RungResult& rung : rungs)
    if (rung.ran() && std::find(names.begin(), names.end(), rung.peak.name) == names.end())
      names.push_back(rung.peak.name);
  return names;
}

std::string format_ladder_legend(const std::vector<RungResult>& rungs) {
  auto any = [&](std::string_view note) {
    return std::any_of(rungs.begin(), rungs.end(), [&](const RungResult& rung) { return rung_note(rung) == note; });
  };
  std::string text =
      "spread: how far timed steps lie apart, of the median; plan, used: MiB that were planned and taken\n"
      "MFU: 6N + 12LCT FLOPs a token, causal: 6N + 6LCT; N: parameters without position embeddings\n";
  for (const std::string& name : peak_names(rungs)) text += fmt::format("peak: {}\n", name);
  if (std::any_of(rungs.begin(), rungs.end(), [](const RungResult& rung) { return rung.ran() && rung.mfu > 1; }))
    text +=
        "more than 100%: the peak was measured while something else ran, or half of attention counts that is not "
        "computed\n";
  if (any("slower")) text += "slower: here, by the medians of all times, so the rungs after it go on without it\n";
  if (any("same")) text += "same: changes nothing here, not measured again\n";
  for (const RungResult& rung : rungs)
    if (!rung.by_reference.empty())
      text +=
          fmt::format("{}: no kernel here for {}, which ran on the host by reference\n", rung.name, rung.by_reference);
  const std::string* told = nullptr;
  for (const RungResult& rung : rungs) {
    if (rung.products.empty() || (told && *told == rung.products)) continue;
    text += fmt::format("{}: {}", rung.name, rung.products);
    told = &rung.products;
  }
  if (any("aside")) text += "aside: measured beside the last kept rung, not kept\n";
  return text;
}

std::string ladder_json(const LadderReport& report) {
  Json out;
  out["date"] = report.date;
  out["command"] = report.command;
  out["machine"] = machine_json(report);
  out["model"] = model_json(report.config);
  out["config"] = parse_ordered_json(to_json(report.config));
  if (report.epoch_tokens > 0) out["epoch_tokens"] = report.epoch_tokens;
  out["rungs"] = Json::array();
  for (const RungResult& rung : report.rungs) out["rungs"].push_back(rung_json(rung, report.epoch_tokens));
  if (!report.meshes.empty()) out["meshes"] = Json::array();
  for (const MeshResult& mesh : report.meshes) out["meshes"].push_back(mesh_json(mesh));
  return format_json(out, 2) + "\n";
}

}  // namespace tokamak
