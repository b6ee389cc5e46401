// state.json of a checkpoint: where the run stands, and what the files beside it must be. A part of checkpoint.h.
#pragma once

#include "checkpoint/checkpoint.h"

namespace tokamak {

struct FileRecord {
  std::string name;
  int64_t bytes = 0;
  std::string checksum;  // of all of it; empty where several ranks wrote it, whose checksums are those that follow
  std::map<std::string, std::string> tensors = {};  // checksum of each by name; empty in files of older versions
  std::string header = "";                          // checksum of what lies before the tensors; empty likewise
};

struct CheckpointRecord {
  CheckpointState state;
  int64_t serial = 0;  // counts the saves into a run folder, so that the newest is known whatever its step
  std::vector<FileRecord> files;
};

inline constexpr const char* kStateFile = "state.json";

/// Writes state.json into the folder; its last field is the checksum of the rest.
void write_record(const std::filesystem::path& folder, const CheckpointRecord& record);

/// Reads it back; every byte is checked. UserError when it is absent, damaged or of another version.
CheckpointRecord read_record(const std::filesystem::path& folder);

}  // namespace tokamak
