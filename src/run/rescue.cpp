#include "run/rescue.h"

#include "base/error.h"
#include "checkpoint/run_folder.h"
#include "config/config.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kPatience{5};

bool is_kept(const TensorStore& store, const std::string& name) { return !is_scratch(store.spec(name).role); }

// Null: another process holds it for longer than one takes to save.
std::unique_ptr<RunFolder> lock_folder(const fs::path& out) {
  for (auto deadline = std::chrono::steady_clock::now() + kPatience;;) {
    try {
      return std::make_unique<RunFolder>(out);
    } catch (const UserError&) {
      if (std::chrono::steady_clock::now() > deadline) return nullptr;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

bool is_saved(const fs::path& out, int64_t step) {
  std::optional<FoundCheckpoint> newest = peek_checkpoint(out);
  return newest && newest->state.step >= step;
}

void add_missing(const fs::path& file, const std::deque<StepMetrics>& recent, int64_t step) {
  MetricsWriter writer(file, step);
  for (const StepMetrics& metrics : recent)
    if (metrics.step > writer.reached()) writer.write(metrics);
  writer.sync();
}

}  // namespace

bool has_whole_state(const TensorStore& store) {
  return std::all_of(store.names().begin(), store.names().end(), [&](const std::string& name) {
    return !is_kept(store, name) || (store.is_here(name) && store.spec(name).cuts.empty());
  });
}

std::optional<fs::path> rescue_progress(const RunProgress& progress, const std::deque<StepMetrics>& recent,
                                        const ResolvedRun& run, const Session& session, Backend& backend,
                                        const RunData& data, const CheckpointMarks& marks, bool leads) {
  TensorStore whole(backend);  // as if this were the only rank
  for (const std::string& name : session.store().names())
    if (is_kept(session.store(), name)) whole.share(session.store(), name);
  if (leads) return save_progress(progress, run, whole, data, marks);
  // Where machines share no folders, the run's is on another one.
  const fs::path out = run.asked.train.out;
  if (!fs::exists(out / "config.json")) return std::nullopt;
  std::unique_ptr<RunFolder> folder = lock_folder(out);
  if (!folder || is_saved(out, progress.step)) return std::nullopt;
  add_missing(out / "metrics.jsonl", recent, progress.step);
  return save_progress(progress, run, whole, data, marks);
}

}  // namespace tokamak
