#include "cli/idle_notes.h"

#include <algorithm>

#include "autodiff/optimizer_rule.h"
#include "compile/resolved_run.h"
#include "config/config.h"
#include "config/idle_settings.h"
#include "data/data_path.h"
#include "data/token_shard_index.h"
#include "model/model.h"

namespace tokamak {

std::vector<std::string> idle_notes(const RunConfig& run, const GivenOptions& given, const Target& target, bool is_gpu,
                                    NotesFor use) {
  RunConfig settled = run;
  settled.compile.precision = resolve(run.compile, target).precision;
  RunPlace place{.is_gpu = is_gpu, .trains = use == NotesFor::kTraining};
  if (place.trains)
    place.all_prepared =
        std::ranges::all_of(all_data_paths(run.data), [](const DataPath& path) { return is_prepared(path.path); });
  return idle_settings(settled, given, place, {unread_options(run.model), unread_options(run.optimizer)});
}

}  // namespace tokamak
