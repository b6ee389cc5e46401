// A run as TensorBoard reads it: event files in the folder tensorboard of the run, one for each start. Tests:
// tests/run/tensorboard_test.cpp, and with TensorBoard itself tests/run/tensorboard_reads.py.
#pragma once

#include "base/file.h"
#include "checkpoint/metrics.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace tokamak {

/// A file of records: length and content, each with its masked CRC-32C, of messages of event.proto. The few fields that
/// are needed are written by hand, so that no library of protocol buffers is.
class TensorBoardWriter {
 public:
  /// A new file in RUN/tensorboard. The run goes on after `done` steps: what earlier files have of later ones does not
  /// count any more. `config` is shown as text. UserError where it cannot be written.
  TensorBoardWriter(const std::filesystem::path& run, int64_t done, std::string_view config);

  /// All numbers of a step that are finite, but for its evaluations.
  void write(const StepMetrics& metrics);
  /// Of those alone: val_loss and tasks.
  void write_evaluations(const StepMetrics& metrics);
  void write_text(int64_t step, std::string_view tag, std::string_view text);

  const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);

  std::filesystem::path path_;
  FileDescriptor fd_;
};

}  // namespace tokamak
