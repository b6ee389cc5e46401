// Which samples led to the state that a run is in, and the proof that each was used as often as it should. Reads what
// the trainer wrote down (data/ledger_record.h) and believes none of it unseen: lines must follow from each other, and
// uses are counted one by one. Tests: tests/data/ledger_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/ledger_record.h"

namespace tokamak {

/// Steps that followed each other in one process and count. Steps are counted from 0 here.
struct LedgerSegment {
  int64_t first_step = 0;
  int64_t end_step = 0;
  int64_t first_sample = 0;
  int64_t samples_per_step = 1;
  double started = 0;  // seconds since the epoch

  int64_t end_sample() const { return first_sample + (end_step - first_step) * samples_per_step; }
};

/// Steps [first_step, end_step) that were done but not saved, so that they were, or will be, done again.
struct LostSteps {
  int64_t first_step = 0;
  int64_t end_step = 0;
};

/// What the newest checkpoint says of itself.
struct SavedState {
  int64_t step = 0;
  int64_t sample = 0;
  std::string order = {};   // order_checksum() of the data in it; empty: not known
  std::string ledger = {};  // the chain of the ledger's last line when it was saved; empty: not known
};

struct Ledger {
  std::vector<LedgerSegment> segments;  // that led to the present state, none of them empty
  std::vector<LostSteps> lost;
  int64_t starts = 0;                 // processes, the first included
  bool ended = false;                 // the last one ended as it should
  std::vector<std::string> problems;  // what does not fit together, each naming its line

  /// Steps and samples that led to the present state.
  int64_t steps() const;
  int64_t samples() const;
  /// The number of the next sample: the same as samples(), if none was skipped or used again.
  int64_t end_sample() const { return segments.empty() ? 0 : segments.back().end_sample(); }

  /// The segment of a step or of a sample; null if there is none.
  const LedgerSegment* segment_of_step(int64_t step) const;
  const LedgerSegment* segment_of_sample(int64_t sample) const;
};

/// Goes through the lines in order: a start cuts off what was not saved before it. `saved` is the run's newest good
/// checkpoint, where there is one: a process may be killed after it saved and before it wrote so.
Ledger replay_ledger(const std::vector<LedgerLine>& lines, const DataRecord& record,
                     const std::optional<SavedState>& saved = std::nullopt);

/// How often the windows of one dataset were used.
struct DatasetUse {
  int64_t windows = 0;
  int64_t samples = 0;   // of the dataset, in the steps that count
  int64_t least = 0;     // uses of the window that was used least
  int64_t most = 0;      // and most
  int64_t at_least = 0;  // windows that were used `least` times
  int64_t at_most = 0;   // and `most` times
  std::string problem;   // how this differs from what the order promises; empty: PROVEN

  double epochs() const { return double(samples) / double(windows); }
};

struct UseOptions {
  /// Samples over all passes that are counted at most, a quarter of an hour on two cores: a ledger may claim any
  /// number.
  int64_t most_counted = int64_t(1) << 33;
  /// Counts of 4 bytes in memory; more windows take more passes, unless few of them can have been used.
  int64_t windows_per_pass = int64_t(1) << 26;
  std::function<void(int64_t done, int64_t total)> progress;  // in samples; by one thread at a time
};

/// Counts the uses of every window, sample by sample, through the order that the loader takes. Promised is that samples
/// 0 to end_sample() - 1 were used once each, so that after the n = q * windows + r of them that are of a dataset, r of
/// its windows were used q + 1 times and the others q times. UserError where more than options.most_counted would have
/// to be counted, before any is.
std::vector<DatasetUse> count_uses(const Ledger& ledger, const DataRecord& record, const UseOptions& options = {});

/// Windows that the record claims and that its files are too small for: sentences that name the dataset. A file that is
/// there has the size that it has now.
std::vector<std::string> windows_beyond_files(const DataRecord& record);

/// What became of a file that the run used.
struct FileState {
  FileFingerprint was;
  bool found = false;
  std::string problem;  // how it differs from what it was; empty: it does not, as far as its fingerprint tells
};

/// Looks at every file of the record where it was then.
std::vector<FileState> compare_files(const DataRecord& record);

}  // namespace tokamak
