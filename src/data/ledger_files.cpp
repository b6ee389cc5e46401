// compare_files() of data/ledger.h.
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

}  // namespace

std::vector<FileState> compare_files(const DataRecord& record) {
  std::vector<FileState> states;
  for (const DatasetRecord& dataset : record.datasets)
    for (const FileFingerprint& file : dataset.files) states.push_back(compare_file(file));
  return states;
}

}  // namespace tokamak
