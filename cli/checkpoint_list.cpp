// `tokamak checkpoint list`: the checkpoints of a run, a line each.
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_listing.h"
#include "checkpoint/metrics.h"
#include "cli/commands.h"
#include "cli/format_time.h"
#include "cli/quote.h"
#include "plan/units.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ListArguments {
  std::string run = "run";
  bool json = false;
};

void visit(FieldList& v, ListArguments& c) {
  v.positional("run", c.run, "run folder (train.out)", false);
  v("json", c.json, "print one JSON object, for programs");
}

struct Row {
  std::string name;
  int64_t step = 0;
  int64_t bytes = 0;
  double saved = 0;  // seconds since the epoch
  std::optional<double> loss, val_loss;
  std::vector<std::string> marks;
  std::string problem;  // empty: it is whole, as far as its state and the lengths of its files tell
};

double saved_at(const fs::path& folder) {
  struct stat status {};
  return ::stat((folder / kStateFile).c_str(), &status) == 0 || ::stat(folder.c_str(), &status) == 0
             ? double(status.st_mtime)
             : 0;
}

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    auto size = fs::file_size(at->path(), gone);
    if (!gone) bytes += int64_t(size);
  }
  return bytes;
}

std::string missing_part(const ListedCheckpoint& checkpoint) {
  for (const FileRecord& file : checkpoint.record.files) {
    std::error_code error;
    auto size = fs::file_size(checkpoint.path / file.name, error);
    if (error) return fmt::format("{} cannot be read", file.name);
    if (int64_t(size) != file.bytes) return fmt::format("{} has {} of {} bytes", file.name, size, file.bytes);
  }
  return "";
}

Row row_of(const fs::path& folder) {
  return {.name = folder.filename().string(), .bytes = bytes_in(folder), .saved = saved_at(folder)};
}

Row row_of(const ListedCheckpoint& checkpoint, const MarkedSteps& marked,
           const std::map<int64_t, StepMetrics>& metrics) {
  Row row = row_of(checkpoint.path);
  const CheckpointState& state = checkpoint.record.state;
  row.step = state.step;
  if (auto at = metrics.find(state.step); at != metrics.end()) {
    row.loss = at->second.loss;
    row.val_loss = at->second.val_loss;
  }
  int64_t named = step_of_checkpoint(checkpoint.path);
  if (named > 0 && named == marked.best) row.marks.emplace_back("best");
  if (named > 0 && named == marked.good) row.marks.emplace_back("known good");
  if (state.is_extra) row.marks.emplace_back("extra");
  row.problem = missing_part(checkpoint);
  return row;
}

// Those that a training run removes meanwhile are not there.
std::vector<Row> list(const fs::path& run) {
  fs::path checkpoints = checkpoints_folder(run);
  CheckpointListing listing = read_checkpoints(checkpoints);
  MarkedSteps marked = marked_steps(checkpoints, listing);
  std::map<int64_t, StepMetrics> metrics = read_metrics(run / "metrics.jsonl");
  std::vector<Row> rows;
  for (const ListedCheckpoint& checkpoint : listing.readable) {
    rows.push_back(row_of(checkpoint, marked, metrics));
    if (rows.size() == 1) rows[0].marks.insert(rows[0].marks.begin(), "newest");
  }
  for (size_t i = 0; i < listing.damaged.size(); ++i) {
    rows.push_back(row_of(listing.damaged[i]));
    rows.back().step = step_of_checkpoint(listing.damaged[i]);
    rows.back().problem = listing.reasons[i];
  }
  std::erase_if(rows, [&](const Row& row) {
    std::error_code error;
    return !fs::exists(fs::symlink_status(checkpoints / row.name, error));
  });
  for (const fs::path& path : list_unfinished(checkpoints)) {
    rows.push_back(row_of(path));
    rows.back().problem = "is being written or removed, or was left behind";
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  return rows;
}

ordered_json to_json(const Row& row) {
  ordered_json json = {{"name", row.name}, {"step", row.step}, {"bytes", row.bytes}, {"saved", row.saved}};
  if (row.loss) json["loss"] = *row.loss;
  if (row.val_loss) json["val_loss"] = *row.val_loss;
  json["marks"] = row.marks;
  json["whole"] = row.problem.empty();
  if (!row.problem.empty()) json["problem"] = row.problem;
  return json;
}

std::string shown(const std::optional<double>& loss) { return loss ? fmt::format("{:.4f}", *loss) : "-"; }

void print_rows(const std::vector<Row>& rows) {
  fmt::print("{:<18}{:<25}{:>11}{:>10}{:>10}  {}\n", "checkpoint", "saved", "size", "loss", "val loss", "");
  for (const Row& row : rows) {
    std::string notes;
    for (const std::string& mark : row.marks) notes += (notes.empty() ? "" : ", ") + mark;
    if (!row.problem.empty()) notes += (notes.empty() ? "NOT WHOLE: " : "; NOT WHOLE: ") + row.problem;
    fmt::print("{:<18}{:<25}{:>11}{:>10}{:>10}  {}\n", one_line(row.name), format_time(row.saved),
               format_bytes(double(row.bytes)), shown(row.loss), shown(row.val_loss), one_line(notes));
  }
}

int run_list(const ListArguments& arguments) {
  std::optional<fs::path> run = run_with_checkpoints(arguments.run);
  if (!run)
    user_error("[checkpoint] {}: expected a run folder with checkpoints, got {}; check the path", arguments.run,
               fs::exists(arguments.run) ? "none of them" : "nothing");
  std::vector<Row> rows = list(*run);
  if (arguments.json) {
    ordered_json json = {{"run", run->string()}, {"checkpoints", ordered_json::array()}};
    for (const Row& row : rows) json["checkpoints"].push_back(to_json(row));
    fmt::print("{}\n", printable(format_json(json)));
  } else if (rows.empty()) {
    fmt::print("no checkpoint in {}\n", printable(checkpoints_folder(*run).string()));
  } else {
    print_rows(rows);
  }
  return 0;
}

}  // namespace

Command checkpoint_list_command() {
  return make_command<ListArguments>(
      "checkpoint list", "the checkpoints of a run: when, how large, with which losses, and whether they are whole",
      "Looks at states and lengths of files; `tokamak checkpoint verify` reads them. Marks: newest, which `train` "
      "goes\n"
      "on from; best (train.keep_best); known good, which is kept for a run that diverges; extra: saved as the best\n"
      "alone.\n\n"
      "  tokamak checkpoint list run",
      run_list);
}

}  // namespace tokamak
