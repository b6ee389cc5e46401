// Whether what lies in a checkpoint is what was written there: every byte is compared with checksums, a piece at a
// time. Tests: tests/checkpoint/verify_test.cpp, tests/errors/checkpoint_damaged_test.cpp.
#pragma once

#include "checkpoint/checkpoint_state.h"

namespace tokamak {

/// Compares a file with its record; UserError when it is of another length or damaged, which names the tensor.
void verify_file(const std::shared_ptr<const MappedFile>& file, const FileRecord& record);

/// One of several ranks that share the work: each compares about as many bytes.
struct VerifyShare {
  int64_t index = 0, count = 1;
};

/// The same for this rank's share of the tensors and the header. What all shares together have compared is the whole
/// file. Where the record tells no checksums of tensors, one of the ranks compares all of it.
void verify_file(const std::shared_ptr<const MappedFile>& file, const FileRecord& record, const VerifyShare& share);

/// Something that is wrong with a checkpoint.
struct CheckpointProblem {
  std::string file;    // path
  std::string tensor;  // empty: the file as a whole
  std::string what;    // expected ..., got ...
};

struct CheckedCheckpoint {
  std::filesystem::path path;
  int64_t files = 0, tensors = 0, bytes = 0;
  bool has_checksums = true;                // false: a model of others, of which only form and numbers are known
  std::vector<CheckpointProblem> problems;  // none: it is good
};

/// All that is wrong with one: a checkpoint's folder or a link to it, or a model in Hugging Face's form. The parameters
/// must be those of its configuration. State, lengths and checksums of a checkpoint are compared; of others' models,
/// which have none, headers and that all numbers are finite. UserError where it is neither.
CheckedCheckpoint check_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace tokamak
