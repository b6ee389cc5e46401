#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "tests/support/device_node.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(OutputFile, IsWrittenWhole) {
  TemporaryFolder folder;
  check_output_file(folder / "a");
  EXPECT_FALSE(fs::exists(folder / "a"));
  write_output_file(folder / "a", "old");
  write_output_file(folder / "a", "new");
  EXPECT_EQ(read_file(folder / "a"), "new");
}

TEST(OutputFile, IsAtTheEndOfALink) {
  TemporaryFolder folder, elsewhere;
  write_file_atomic(elsewhere / "there", "old");
  fs::create_symlink(elsewhere / "there", folder / "link");
  fs::create_symlink(elsewhere / "absent", folder / "dangling");
  for (const char* name : {"link", "dangling"}) {
    check_output_file(folder / name);
    write_output_file(folder / name, "new");
    EXPECT_TRUE(fs::is_symlink(folder / name)) << name;
    EXPECT_EQ(read_file(folder / name), "new") << name;
  }
  EXPECT_EQ(read_file(elsewhere / "there"), "new");
}

TEST(OutputFile, MayBeAPipe) {
  TemporaryFolder folder;
  fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  check_output_file(pipe);
  expect_user_error([&] { write_output_file(pipe, "x"); }, {pipe.string(), "nobody reads", "start its reader first"});
  FileDescriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_output_file(pipe, "hello");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(read_all(reader.get(), "pipe"), "hello");
}

TEST(OutputFile, MayBeADevice) {
  TemporaryFolder folder;
  fs::path full = folder / "full", null = folder / "null";
  if (!make_device(full, Device::kFull) || !make_device(null, Device::kNull)) GTEST_SKIP() << "no devices for us here";
  if (FileDescriptor fd(::open(null.c_str(), O_WRONLY | O_CLOEXEC)); !fd.is_open()) GTEST_SKIP() << "no devices here";
  check_output_file(full);
  expect_user_error([&] { write_output_file(full, "x"); }, {full.string(), "No space left"});
  write_output_file(null, "x");
  EXPECT_TRUE(fs::is_character_file(full));
  EXPECT_TRUE(fs::is_character_file(null));
}

TEST(OutputFile, MayBeOpenAlready) {
  TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  fs::path name = "/dev/fd/" + std::to_string(ends[1]);
  check_output_file(name);
  write_output_file(name, "hello");
  ::close(ends[1]);
  EXPECT_EQ(read_all(ends[0], "pipe"), "hello");
  expect_user_error([&] { check_output_file(name); }, {"cannot write", name.string()});  // closed
  expect_user_error([&] { check_output_file("/dev/fd/" + std::to_string(ends[0])); }, {"cannot write"});
  ::close(ends[0]);
}

TEST(OutputFile, IsNoFolder) {
  TemporaryFolder folder;
  expect_user_error([&] { check_output_file(folder.path()); }, {folder.path().string(), "it is a folder"});
  expect_user_error([&] { write_output_file(folder.path(), "x"); }, {folder.path().string(), "it is a folder"});
  expect_user_error([&] { check_output_file(folder / "no/such"); }, {"no/such", "check the path"});
}

}  // namespace
}  // namespace tokamak
