#include "ladder/mesh_table.h"

#include "base/bytes.h"

#include <fmt/format.h>

namespace tokamak {
namespace {}  // namespace

std::string format_mesh_header() {
  return fmt::format("{:<24} {:>6} {:>8} {:>8} {:>6} {:>9} {:>6} {:>7} {:>8} {:>8} {:>9} {:>9}", "mesh", "batch", "ms",
                     "predict", "error", "tokens/s", "x one", "of N x", "exposed", "predict", "plan MiB", "used MiB");
}

std::string format_mesh_result(const MeshResult& m) {
  const RungResult& r = m.run;
  if (!r.ran()) return fmt::format("{:<24} skipped: {}", m.rung.name, r.failure);
  return fmt::format("{:<24} {:>6} {:>8.2f} {:>8.2f} {:>+5.0f}% {:>9.0f} {:>6} {:>7} {:>8} {:>8.2f} {:>9.1f} {:>9.1f}",
                     m.rung.name, m.sequences, r.ms, r.predicted_ms, 100 * r.prediction_error(), r.tokens_per_second,
                     format_speedup(m), format_efficiency(m), format_exposed(m), m.predicted_exposed_ms,
                     double(r.planned_bytes) / kMiB, double(r.used_bytes) / kMiB);
}

std::string format_mesh_legend(const RungResult& best) {
  std::string text =
      "batch: sequences of a step, of all ranks; as many for each of them as one rank has alone\n"
      "exposed: ms by which a step is longer than one that sends nothing; MiB: of a rank\n";
  if (best.ran()) return text + fmt::format("x one: over the best rung of one rank, '{}'\n", best.name);
  return text + "x one: the run does not fit one rank alone\n";
}

std::string format_speedup(const MeshResult& m) {
  return m.run.speedup_total > 0 ? fmt::format("{:.2f}", m.run.speedup_total) : "-";
}

std::string format_efficiency(const MeshResult& m) {
  return m.run.speedup_total > 0 ? fmt::format("{:.1f}%", 100 * m.efficiency()) : "-";
}

std::string format_exposed(const MeshResult& m) { return m.exposed_ms ? fmt::format("{:.2f}", *m.exposed_ms) : "-"; }

}  // namespace tokamak
