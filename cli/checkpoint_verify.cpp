// `tokamak checkpoint verify`: every byte of checkpoints compared with what was written.
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/verify.h"
#include "cli/commands.h"
#include "cli/quote.h"
#include "plan/units.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct VerifyArguments {
  std::vector<std::string> paths;
  bool json = false;
};

void visit(FieldList& v, VerifyArguments& c) {
  v.positional("path", c.paths, "run folders, checkpoints, or models in Hugging Face's form");
  v("json", c.json, "print one JSON object per checkpoint, for programs");
}

std::vector<fs::path> checkpoints_at(const std::string& path) {
  std::optional<fs::path> run = run_with_checkpoints(path);
  std::vector<fs::path> all = run ? list_checkpoints(checkpoints_folder(*run)) : std::vector<fs::path>();
  return all.empty() ? std::vector<fs::path>{path} : all;
}

bool is_gone(const fs::path& path) {
  std::error_code error;
  return !fs::exists(fs::symlink_status(path, error));
}

std::string describe(const CheckpointProblem& problem) {
  std::string file = one_line(problem.file);
  return problem.tensor.empty() ? fmt::format("{}: {}", file, printable(problem.what))
                                : fmt::format("{}: '{}': {}", file, one_line(problem.tensor), problem.what);
}

void print_text(const CheckedCheckpoint& checked) {
  std::string verdict = !checked.problems.empty() ? "DAMAGED"
                        : checked.has_checksums   ? "good"
                                                  : "good, as far as can be told without checksums";
  fmt::print("{}: {}: {} file{}, {} tensors, {}\n", one_line(checked.path.string()), verdict, checked.files,
             checked.files == 1 ? "" : "s", checked.tensors, format_bytes(double(checked.bytes)));
  for (const CheckpointProblem& problem : checked.problems) fmt::print("  {}\n", describe(problem));
}

void print_json(const CheckedCheckpoint& checked) {
  ordered_json json = {{"path", checked.path.string()},      {"files", checked.files},
                       {"tensors", checked.tensors},         {"bytes", checked.bytes},
                       {"checksums", checked.has_checksums}, {"good", checked.problems.empty()},
                       {"problems", ordered_json::array()}};
  for (const CheckpointProblem& problem : checked.problems) {
    ordered_json entry = {{"file", problem.file}};
    if (!problem.tensor.empty()) entry["tensor"] = problem.tensor;
    entry["what"] = problem.what;
    json["problems"].push_back(entry);
  }
  fmt::print("{}\n", printable(format_json(json)));
}

int run_verify(const VerifyArguments& arguments) {
  int64_t checkpoints = 0, damaged = 0;
  for (const std::string& path : arguments.paths)
    for (const fs::path& checkpoint : checkpoints_at(path)) {
      CheckedCheckpoint checked = check_checkpoint(checkpoint);
      if (!checked.problems.empty() && is_gone(checkpoint)) continue;  // a run removes them as it goes on
      (arguments.json ? print_json : print_text)(checked);
      ++checkpoints;
      damaged += checked.problems.empty() ? 0 : 1;
    }
  std::fflush(stdout);
  if (damaged > 0)
    user_error(
        "[checkpoint] expected {} good checkpoint{}, got {} damaged (named above); copy them again, or use others",
        checkpoints, checkpoints == 1 ? "" : "s", damaged);
  return 0;
}

}  // namespace

Command checkpoint_verify_command() {
  return make_command<VerifyArguments>("checkpoint verify",
                                       "whether checkpoints are what was saved, byte by byte, and what is not",
                                       "Names each file and tensor that is damaged; the exit status is then 1. Models "
                                       "of others have no checksums: their\n"
                                       "headers and names, and that all numbers are finite, are looked at.\n\n"
                                       "  tokamak checkpoint verify run\n"
                                       "  tokamak checkpoint verify run/checkpoints/best",
                                       run_verify);
}

}  // namespace tokamak
