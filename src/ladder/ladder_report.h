// The ladder's results as a table for the terminal and as JSON. Tests: tests/ladder/ladder_report_test.cpp.
#pragma once

#include "config/config.h"
#include "ladder/ladder.h"
#include "ladder/mesh_ladder.h"

namespace tokamak {

/// Everything that a reader needs to judge the numbers and to measure them again.
struct LadderReport {
  RunConfig config;
  Target target;
  std::string versions;  // of driver and libraries; empty: the CPU
  std::string command;
  std::string date;
  int64_t epoch_tokens = 0;       // of the data; 0: not known
  std::vector<RungResult> rungs;  // of one rank
  std::vector<MeshResult> meshes;
};

/// Lines of at most 120 columns.
std::string format_ladder_header();
std::string format_rung(const RungResult& result);
/// What the columns mean and the peaks behind the MFU, below the table.
std::string format_ladder_legend(const std::vector<RungResult>& rungs);

/// "peak 989 TFLOP/s (H200 datasheet, bf16 dense)" once for each that the rungs were compared with.
std::vector<std::string> peak_names(const std::vector<RungResult>& rungs);

/// A word or two on a rung that is not simply one step up; "" for those that are.
std::string rung_note(const RungResult& result);

std::string ladder_json(const LadderReport& report);

}  // namespace tokamak
