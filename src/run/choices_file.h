// choices.json in a run's folder: what was chosen by measurement, so that a run that goes on chooses as it did,
// whatever became of the cache, and from whichever of its checkpoints. Tests: tests/run/choices_file_test.cpp.
#pragma once

#include "run/train_observer.h"
#include "tune/tune.h"

namespace tokamak {

class ChoicesFile {
 public:
  explicit ChoicesFile(const std::filesystem::path& run) : path_(run / "choices.json") {}

  /// `platform` tuned for the run; where it `goes_on`, by what the file holds. Says so where that is of another kind of
  /// GPU or of other libraries.
  Platform tune(const ResolvedRun& run, const Platform& platform, Backend& backend, bool goes_on,
                TrainObserver& observer);

  /// Writes what is chosen by now, where that is new, beside what a run that goes on has chosen for other steps.
  void save(const Tuning& tuning, Backend& backend);

 private:
  std::filesystem::path path_;
  std::string text_;  // what the file is known to hold
};

}  // namespace tokamak
