// The benchmarks that a model in training is asked now and then (train.tasks). Tests: tests/e2e/tasks_test.cpp.
#pragma once

#include "checkpoint/metrics.h"
#include "evaluate/task.h"
#include "run/session.h"

#include <functional>
#include <optional>

namespace tokamak {

class TrainTasks {
 public:
  /// Questions are read and memory is taken now, that of training steps where it is large enough. Session, platform and
  /// what they were made of must outlive it. UserErrors: no tokenizer (null), files, a mesh that cannot be used.
  TrainTasks(Session& session, const Platform& platform, Backend& backend, const MeshRanks* ranks,
             const Tokenizer* tokenizer);

  /// What a user should know of the questions: sentences.
  std::vector<std::string> notes() const;

  /// By the parameters as they are; all ranks call it. Nothing when `stop`, which is asked between batches, says so.
  std::optional<std::vector<TaskResult>> ask(const std::function<bool()>& stop);

 private:
  int64_t context_;
  std::vector<Task> tasks_;
  Scorer scorer_;
};

/// The numbers of all tasks for metrics.jsonl.
std::vector<TaskMetric> metrics_of(const std::vector<TaskResult>& results);

/// `hellaswag after step 500: accuracy 0.2951 +-0.0046, accuracy_bytes 0.3312 +-0.0047`
std::string describe(const TaskResult& result, int64_t step);

}  // namespace tokamak
