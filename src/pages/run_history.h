// What a run's folder tells of its training, thinned out for a page. Tests: tests/pages/report_page_test.cpp.
#pragma once

#include "checkpoint/event_log.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tokamak {

/// A number over a run. NaN where a step has none.
struct HistorySeries {
  std::string name;
  std::vector<double> values;
};

/// Points of a run: `step`, `tokens` and `hours` of training up to it, and what was measured.
struct HistoryPoints {
  std::vector<double> step, tokens, hours;
  std::vector<HistorySeries> series;
};

struct HistorySample {
  int64_t step = 0;
  std::string text;
};

struct RunHistory {
  std::string name;  // as the user named it
  int64_t steps = 0;
  HistoryPoints training;     // loss, gradient_norm, learning_rate, tokens_per_second, mfu, step_ms, data_wait, memory,
                              // loss_scale: means of neighbouring steps
  HistoryPoints evaluations;  // validation, and each number of each task
  std::vector<RunEvent> events;
  std::string goodput;  // format_goodput of all starts, until now where it trains; empty: nothing is saved yet
  std::vector<HistorySample> samples;
  std::vector<std::pair<std::string, std::string>> config;  // key and value, as a run file has them
  bool is_training = false;                                 // a process has the run now
};

/// At most `points` means of the training's steps. UserError where the folder holds no run.
RunHistory read_history(const std::filesystem::path& run, size_t points = 1500);

}  // namespace tokamak
