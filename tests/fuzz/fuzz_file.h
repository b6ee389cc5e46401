// What the fuzzing programs share: random bytes as a file, and the rules that any input has to keep.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "data/open_source.h"

namespace tokamak {

/// Ends the program, so that libFuzzer keeps the input.
[[noreturn]] inline void fuzz_failure(const std::string& what) {
  std::fprintf(stderr, "rule broken: %s\n", what.c_str());
  std::abort();
}

/// A file in memory that readers can open by its path.
class FuzzFile {
 public:
  FuzzFile(const uint8_t* data, size_t size) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (!file_.is_open() || ::write(file_.get(), data, size) != ssize_t(size)) fuzz_failure("no memory file");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  FileDescriptor file_;
};

/// All text of a source, which must not hand out an empty document, end inside one, or fail with anything but
/// UserErrors. True, if the source was read to its end.
inline bool read_all_documents(const std::string& path, const SourceOptions& options, std::string& all) {
  try {
    auto source = open_source(path, options);
    bool continues = false;
    for (Document document; source->next(document); continues = document.continues) {
      if (document.text.empty() && document.tokens.empty()) fuzz_failure("an empty document");
      all += document.text;
    }
    if (continues) fuzz_failure("a document ends before its last part");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace tokamak
