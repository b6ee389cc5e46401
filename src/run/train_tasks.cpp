#include "run/train_tasks.h"

#include "base/error.h"
#include "evaluate/run_tasks.h"

#include <cmath>

namespace tokamak {
namespace {

struct Stopped {};  // thrown between two batches

std::vector<Task> load(const RunConfig& asked, const Tokenizer* tokenizer) {
  std::vector<TaskSpec> specs = parse_tasks(asked.train.tasks);
  if (!tokenizer)
    user_error(
        "[train.tasks] expected data with a tokenizer, by which questions become tokens, got none; name it with "
        "--data.tokenizer");
  TaskOptions options{.limit = asked.train.tasks_limit, .cut_contexts = asked.train.tasks_cut_contexts};
  return load_tasks(specs, *tokenizer, asked.model.context, options);
}

}  // namespace

TrainTasks::TrainTasks(Session& session, const Platform& platform, Backend& backend, const MeshRanks* ranks,
                       const Tokenizer* tokenizer)
    : context_(session.resolved().asked.model.context), tasks_(load(session.resolved().asked, tokenizer)),
      scorer_(session.resolved(), platform, backend, session.store(),
              {.ranks = ranks, .arena = session.runner().arena(), .arena_bytes = session.runner().arena_bytes()}) {
  for (const Task& task : tasks_) scorer_.prepare(task.requests);
}

std::vector<std::string> TrainTasks::notes() const {
  std::vector<std::string> notes;
  for (const Task& task : tasks_)
    if (task.cut > 0)
      notes.push_back(
          fmt::format("warning: {}: {} contexts are longer than model.context = {} and lost their beginning",
                      task.spec.name, task.cut, context_));
  return notes;
}

std::optional<std::vector<TaskResult>> TrainTasks::ask(const std::function<bool()>& stop) {
  try {
    return run_tasks(scorer_, tasks_, [&](const std::string&, size_t, size_t) {
      if (stop()) throw Stopped();
    });
  } catch (const Stopped&) {
    return std::nullopt;
  }
}

std::vector<TaskMetric> metrics_of(const std::vector<TaskResult>& results) {
  std::vector<TaskMetric> metrics;
  for (const TaskResult& result : results)
    for (const Metric& metric : result.metrics) metrics.push_back({result.name, metric.name, metric.value});
  for (const Metric& metric : centred_averages(results)) metrics.push_back({"mean", metric.name, metric.value});
  return metrics;
}

std::string describe(const TaskResult& result, int64_t step) {
  std::string text = fmt::format("{} after step {}:", result.name, step), between = " ";
  for (const Metric& metric : result.metrics) {
    if (metric.name.starts_with("centred") || metric.name == "tokens" || metric.name == "bytes") continue;
    text += fmt::format("{}{} {:.4f}", between, metric.name, metric.value);
    if (metric.error > 0) text += fmt::format(" +-{:.4f}", metric.error);
    between = ", ";
  }
  return text;
}

}  // namespace tokamak
