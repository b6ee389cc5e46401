// runs/quickstart.sh with a program that only notes how it was called.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(Quickstart, AnInterruptedTrainingEndsIt) {
  TemporaryFolder folder;
  for (const char* name : {"build/release/bin", "runs"}) fs::create_directories(folder / name);
  fs::copy("runs/quickstart.sh", folder / "runs/quickstart.sh");
  fs::path program = folder / "build/release/bin/tokamak";
  write_file_quickly(program, "#!/bin/sh\necho $1 >> calls\n[ $1 != train ] || exit 130\n");
  fs::permissions(program, fs::perms::owner_all);
  write_file_quickly(folder / "text.txt", "text");
  std::string command = "TEXT=text.txt " + (folder / "runs/quickstart.sh").string() + " > /dev/null";
  int status = std::system(("cd " + folder.path().string() + " && " + command).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(read_file(folder / "calls"), "prepare\ntrain\n");
}

}  // namespace
}  // namespace tokamak
