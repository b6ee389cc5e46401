// `tokamak checkpoint prune`: removes checkpoints that are not needed any more.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_listing.h"
#include "checkpoint/run_folder.h"
#include "cli/commands.h"
#include "cli/quote.h"
#include "cli/streams.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct PruneArguments {
  std::string run;
  int64_t keep = 0;
  int64_t every = 0;
  bool dry_run = false;
  bool json = false;
};

void visit(FieldList& v, PruneArguments& c) {
  v.positional("run", c.run, "run folder (train.out)");
  v("keep", c.keep, "newest checkpoints that stay; has to be said", at_least(0));
  v("every", c.every, "checkpoints of steps that are multiples of this stay, too; 0: none", at_least(0));
  v("dry_run", c.dry_run, "only say what would be removed");
  v("json", c.json, "print one JSON object, for programs");
}

// What `train` would go on from is read to its end: where the newest is damaged, an older one stays.
std::vector<fs::path> choose(const fs::path& run, const KeepRule& rule) {
  fs::path checkpoints = checkpoints_folder(run);
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found = find_checkpoint(run, &warnings);
  for (const std::string& warning : warnings) print_warning(warning);
  CheckpointListing listing = read_checkpoints(checkpoints);
  MarkedSteps marked = marked_steps(checkpoints, listing);
  std::vector<fs::path> gone = superfluous(listing, rule, {marked.good, marked.best});
  if (found) std::erase(gone, found->path);
  std::sort(gone.begin(), gone.end());
  return gone;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

void print_text(const PruneArguments& arguments, const std::vector<fs::path>& gone, size_t all) {
  for (const fs::path& path : gone)
    fmt::print("{} {}\n", arguments.dry_run ? "would remove" : "removed", one_line(path.string()));
  fmt::print("{} of {} checkpoints {}\n", gone.size(), all, arguments.dry_run ? "would go" : "removed");
}

void print_json(const PruneArguments& arguments, const std::vector<fs::path>& gone, size_t all) {
  ordered_json json = {
      {"run", arguments.run}, {"dry_run", arguments.dry_run}, {"checkpoints", all}, {"removed", ordered_json::array()}};
  for (const fs::path& path : gone) json["removed"].push_back(path.string());
  fmt::print("{}\n", printable(format_json(json)));
}

int run_prune(const PruneArguments& arguments) {
  if (arguments.keep < 1)
    user_error("[--keep] expected how many of the newest checkpoints stay, 1 or more, got {}; add --keep=2",
               arguments.keep);
  std::optional<fs::path> run = run_with_checkpoints(arguments.run);
  if (!run)
    user_error("[checkpoint] {}: expected a run folder with checkpoints, got {}; check the path", arguments.run,
               is_there(arguments.run) ? "none of them" : "nothing");
  auto lock = lock_run(*run);
  size_t all = list_checkpoints(checkpoints_folder(*run)).size();
  std::vector<fs::path> gone = choose(*run, {arguments.keep, arguments.every});
  if (!arguments.dry_run)
    for (const fs::path& path : gone) {
      remove_checkpoint(path);
      if (is_there(path))
        user_error("[checkpoint] cannot remove {}; check the permissions of its folder", path.string());
    }
  (arguments.json ? print_json : print_text)(arguments, gone, all);
  return 0;
}

}  // namespace

Command checkpoint_prune_command() {
  return make_command<PruneArguments>(
      "checkpoint prune", "remove the older checkpoints of a run that does not train now",
      "The best, the one known to be good and the newest whole one always stay, as do folders that are being written;\n"
      "those that were saved as the best alone do not count.\n\n"
      "  tokamak checkpoint prune run --keep=2 --every=1000 --dry-run",
      run_prune);
}

}  // namespace tokamak
