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

/// The exit status of the script, whose program is these lines.
int run_quickstart(const TemporaryFolder& folder, const std::string& lines) {
  for (const char* name : {"build/release/bin", "runs"}) fs::create_directories(folder / name);
  fs::copy("runs/quickstart.sh", folder / "runs/quickstart.sh");
  fs::path program = folder / "build/release/bin/tokamak";
  write_file_quickly(program, "#!/bin/sh\n" + lines);
  fs::permissions(program, fs::perms::owner_all);
  write_file_quickly(folder / "text.txt", "text");
  std::string command = "TEXT=text.txt " + (folder / "runs/quickstart.sh").string() + " > output";
  return WEXITSTATUS(std::system(("cd " + folder.path().string() + " && " + command).c_str()));
}

TEST(Quickstart, AnInterruptedTrainingEndsIt) {
  TemporaryFolder folder;
  EXPECT_EQ(run_quickstart(folder, "echo $1 >> calls\n[ $1 != train ] || exit 130\n"), 130);
  EXPECT_EQ(read_file(folder / "calls"), "prepare\ntrain\n");
}

TEST(Quickstart, WritesTheLaddersPageAndNamesIt) {
  TemporaryFolder folder;
  EXPECT_EQ(run_quickstart(folder, "[ $1 != ladder ] || echo $* > ladder_call\n"), 0);
  std::string call = read_file(folder / "ladder_call"), output = read_file(folder / "output");
  size_t at = call.find("--out=");
  ASSERT_NE(at, std::string::npos);
  std::string out = call.substr(at + 6, call.find_first_of(" \n", at) - at - 6);
  EXPECT_NE(output.find(out + "/ladder.html"), std::string::npos) << output;
}

}  // namespace
}  // namespace tokamak
