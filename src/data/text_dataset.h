// Plain text as a dataset, encoded as it is read: no index, no tokens on disk. The files, one after the other and
// without byte order marks, are one stream of bytes, with the end-of-text marker between files. Window w is the T + 1
// tokens from the first word border at or after byte w * S on, where S, bytes per window, is chosen once: T times the
// bytes per token at the beginning of the data. At the end of the last file reading goes on with the first. Tests:
// tests/data/text_dataset_test.cpp.
#pragma once

#include <filesystem>

#include "data/dataset.h"
#include "data/tokenizer.h"

namespace tokamak {

struct TextDatasetOptions {
  std::string path;                          // what the user named
  std::vector<std::filesystem::path> files;  // regular files, not compressed
  int64_t context = 1;                       // T
  int64_t window_bytes = 0;                  // S of the run that goes on; 0: measured
};

/// UserErrors: a file that cannot be read; less than S bytes in all; a vocabulary without <|endoftext|>.
std::unique_ptr<Dataset> open_text_dataset(TextDatasetOptions options, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace tokamak
