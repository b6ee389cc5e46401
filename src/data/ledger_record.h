// What a run writes down of its data, for `tokamak data ledger`: data.json (what fixes the order of samples, and the
// files) and ledger.jsonl (which samples were used when). The trainer writes them; data/ledger.h reads and proves.
// Tests: tests/data/ledger_record_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/sample_order.h"
#include "data/token_array.h"

namespace tokamak {

/// One entry of data.path as it was when the run used it.
struct DatasetRecord {
  std::string path;          // the entry, without its weight
  std::string kind;          // "prepared", "tokens" or "text"
  MixtureShare share;        // windows of an epoch, samples of a block
  int64_t window_bytes = 0;  // of a text dataset: S; window w begins at byte w * S; else 0
  std::vector<FileFingerprint> files;
  std::string tokens;  // content_checksum(): the same files read in another way differ in it; empty in old records
};

/// What fixes which tokens a sample number means: all of the order's parameters.
struct DataRecord {
  uint64_t seed = 0;
  int64_t context = 0;  // T; a sample has T + 1 tokens
  std::vector<DatasetRecord> datasets;

  /// The order of training samples.
  SampleOrder order() const;
  /// Samples in a block of it.
  int64_t block_size() const;
};

/// As JSON text, as it stands in data.json and in a checkpoint's state.json, and back. A UserError names `where` when
/// fields are missing or make no sense.
std::string to_json(const DataRecord& record);
DataRecord data_record_from_json(std::string_view text, std::string_view where);

/// The checksum of everything in the record but paths: two runs with the same one have the same samples.
std::string order_checksum(const DataRecord& record);

/// Throws a UserError when data that a run began with became other data: names the setting, or the file. Files may lie
/// elsewhere now. `began` names what holds the record of the beginning, for the message.
void require_same_data(const DataRecord& was, const DataRecord& is, const std::string& began);

/// A line of ledger.jsonl. Step s (counted from 0) of a segment takes samples
/// [sample + (s - step) * samples_per_step, ... + samples_per_step) of its start line.
struct LedgerLine {
  /// start: the run begins or goes on after `step` steps. checkpoint: `step` steps are done and saved. end: the process
  /// ended as it should, with `step` steps done and saved.
  enum class Event { kStart, kCheckpoint, kEnd };

  Event event = Event::kStart;
  int64_t step = 0;              // optimizer steps done
  int64_t sample = 0;            // samples used by them: the number of the next one
  int64_t samples_per_step = 0;  // from here on
  int64_t reached = 0;  // start: the last step that the run before is known to have done; steps after `step` up
                        // to it were lost and are done again. Else the same as `step`.
  std::string order;    // order_checksum() of the data
  double time = 0;      // seconds since the epoch
  std::string chain;    // ledger_chain() of the line before and this one

  bool operator==(const LedgerLine&) const = default;
};

/// One line of JSON, without its newline, and back. A UserError names `where` (file and line).
std::string format_ledger_line(const LedgerLine& line);
LedgerLine parse_ledger_line(std::string_view text, std::string_view where);

/// Ties a line to all lines before it: the checksum of their chain (of the first line: empty) and of the line's other
/// fields. A line that is missing, there twice or changed later breaks it.
std::string ledger_chain(std::string_view before, LedgerLine line);

/// Whether a line has this chain, so that all lines up to it are there; true of an empty one, which nobody knows.
bool has_chain(const std::vector<LedgerLine>& lines, std::string_view chain);

/// Names inside the run folder.
inline constexpr const char* kDataRecordFile = "data.json";
inline constexpr const char* kLedgerFile = "ledger.jsonl";

/// Reads them; UserErrors name file and line. A torn last line of the ledger (the process was killed in it) is left
/// out.
DataRecord read_data_record(const std::filesystem::path& run);
std::vector<LedgerLine> read_ledger(const std::filesystem::path& run);

/// Appends lines to ledger.jsonl.
class LedgerWriter {
 public:
  /// Writes data.json. `fresh`: the ledger starts empty; else it goes on, without a torn last line. `follows`: the
  /// chain that the checkpoint knows which the run goes on from. Where the ledger has lost it, what is written from now
  /// on does not follow from the lines that are left, which replay_ledger() tells.
  LedgerWriter(const std::filesystem::path& run, const DataRecord& record, bool fresh, const std::string& follows = "");

  /// Of the last line.
  const std::string& chain() const { return chain_; }

  /// Hands the line to the system whole and syncs it; sets its `order` and `chain`.
  void write(LedgerLine line);

 private:
  std::filesystem::path path_;
  std::string order_;
  std::string chain_;  // of the last line
  FileDescriptor fd_;
};

}  // namespace tokamak
