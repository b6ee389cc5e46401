// What data/ledger.h says of files: compare_files() and windows_beyond_files().
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/fingerprint.h"
#include "data/ledger.h"

namespace tokamak {

namespace {

FileState compare_file(const FileFingerprint& was) {
  FileState state{.was = was, .found = std::filesystem::exists(was.path), .problem = {}};
  if (!state.found) return state;
  try {
    FileFingerprint now = fingerprint_file(was.path);
    if (now.bytes != was.bytes || now.checksum != was.checksum)
      state.problem = fmt::format("it had {} bytes, {}; now it has {} bytes, {}: it has changed since the run used it",
                                  was.bytes, was.checksum, now.bytes, now.checksum);
  } catch (const UserError& error) {
    state.problem = error.what();
  }
  return state;
}

int64_t size_now(const FileFingerprint& file) {
  std::error_code absent;
  auto bytes = std::filesystem::file_size(file.path, absent);
  return absent ? file.bytes : int64_t(bytes);
}

// At most. Tokens in shards have two bytes or four; other containers may be compressed, to a 1032nd by Deflate.
double tokens_per_byte(const DatasetRecord& dataset) { return dataset.kind == "prepared" ? 0.5 : 1032; }

double most_windows(const DatasetRecord& dataset, int64_t context) {
  double bytes = 0;
  for (const FileFingerprint& file : dataset.files) bytes += double(size_now(file));
  if (dataset.kind == "text") return bytes / double(std::max<int64_t>(dataset.window_bytes, 1));
  return bytes * tokens_per_byte(dataset) / double(context);
}

}  // namespace

std::vector<std::string> windows_beyond_files(const DataRecord& record) {
  std::vector<std::string> problems;
  for (const DatasetRecord& dataset : record.datasets)
    if (double most = most_windows(dataset, record.context); double(dataset.share.windows) > most)
      problems.push_back(fmt::format("{}: {} has {} windows of it, but its files hold at most {:.0f}", dataset.path,
                                     kDataRecordFile, dataset.share.windows, std::floor(most)));
  return problems;
}

std::vector<FileState> compare_files(const DataRecord& record) {
  std::vector<FileState> states;
  for (const DatasetRecord& dataset : record.datasets)
    for (const FileFingerprint& file : dataset.files) states.push_back(compare_file(file));
  return states;
}

}  // namespace tokamak
