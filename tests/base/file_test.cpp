#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/system.h"
#include "tests/support/device_node.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  TemporaryFolder folder;
  AtomicFile file(folder / "a.bin");
  file.write("hello world");
  file.write_at(6, std::as_bytes(std::span(std::string_view("WORLD"))));
  EXPECT_FALSE(fs::exists(folder / "a.bin"));
  file.commit();
  EXPECT_EQ(read_file(folder / "a.bin"), "hello WORLD");
  EXPECT_FALSE(fs::exists(file.temporary_path()));
}

TEST(AtomicFile, LeavesTheOldFileWhenAbandoned) {
  TemporaryFolder folder;
  write_file_atomic(folder / "a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.write("new but not finished");
  }
  EXPECT_EQ(read_file(folder / "a.txt"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(AtomicFile, RemovesALeftoverOfAKilledProcess) {
  TemporaryFolder folder;
  write_file_atomic(folder / "a.txt.0123456789abcdef.tmp", "a much longer leftover");
  write_file_atomic(folder / "a.txt", "new");
  EXPECT_EQ(read_file(folder / "a.txt"), "new");
  EXPECT_FALSE(fs::exists(folder / "a.txt.0123456789abcdef.tmp"));
}

TEST(AtomicFile, FollowsNoLink) {
  TemporaryFolder folder;
  write_file_atomic(folder / "target", "mine");
  fs::create_symlink(folder / "target", folder / "a.txt.tmp");
  fs::create_symlink(folder / "target", folder / "a.txt");
  write_file_atomic(folder / "a.txt", "new");
  EXPECT_EQ(read_file(folder / "target"), "mine");
  EXPECT_EQ(read_file(folder / "a.txt"), "new");
}

TEST(AtomicFile, SeveralMayWriteTheSameName) {
  TemporaryFolder folder;
  AtomicFile first(folder / "a.txt");
  AtomicFile second(folder / "a.txt");
  first.write("first");
  second.write("second");
  second.commit();
  EXPECT_EQ(read_file(folder / "a.txt"), "second");
  first.commit();
  EXPECT_EQ(read_file(folder / "a.txt"), "first");
}

TEST(AtomicFile, SaysWhereItCannotWrite) {
  TemporaryFolder folder;
  expect_user_error([&] { AtomicFile file(folder / "no/such/file"); },
                    {"cannot write", "no/such/file", "No such file", "check the path"});
}

// By its name the pipe, or /dev/null, would be gone for everyone.
TEST(AtomicFile, TakesNoPlaceOfAPipeOrADevice) {
  TemporaryFolder folder;
  fs::path pipe = folder / "pipe", null = folder / "null";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  for (auto write : {write_file_atomic, write_shared_file}) {
    expect_user_error([&] { write(pipe, "x"); }, {"cannot write", pipe.string(), "it is a pipe or a device"});
    EXPECT_TRUE(fs::is_fifo(pipe));
    if (!make_device(null, Device::kNull)) continue;
    expect_user_error([&] { write(null, "x"); }, {"cannot write", null.string(), "it is a pipe or a device"});
    EXPECT_TRUE(fs::is_character_file(null));
    fs::remove(null);
  }
  AtomicFile early(folder / "late");
  ASSERT_EQ(::mkfifo((folder / "late").c_str(), 0666), 0);
  expect_user_error([&] { early.commit(); }, {"cannot write", "it is a pipe or a device"});
}

TEST(SharedFile, IsWholeThoughSeveralWriteIt) {
  TemporaryFolder folder;
  constexpr int kWriters = 4, kTimes = 20;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < kTimes; ++i) {
        write_shared_file(folder / "a.txt", std::string(100'000, char('a' + w)));
        std::string read = read_file(folder / "a.txt");
        EXPECT_EQ(read, std::string(100'000, read.empty() ? ' ' : read[0]));
      }
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);  // nothing is left over
}

TEST(SharedFile, SaysWhereItCannotWrite) {
  TemporaryFolder folder;
  expect_user_error([&] { write_shared_file(folder / "no/such/file", "x"); }, {"cannot write", "no/such/file"});
}

TEST(MappedFile, HoldsTheContent) {
  TemporaryFolder folder;
  std::string content("a\0b\xff", 4);
  write_file_atomic(folder / "a.bin", content);
  MappedFile file(folder / "a.bin");
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), content);
  EXPECT_TRUE(file.bytes().empty());
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  TemporaryFolder folder;
  write_file_atomic(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(MappedFile, RefusesAFolderAndAMissingFile) {
  TemporaryFolder folder;
  expect_user_error([&] { MappedFile file(folder.path()); }, {"cannot read", "it is a folder"});
  expect_user_error([&] { MappedFile file(folder / "nothing"); }, {"nothing", "No such file"});
}

TEST(ReadAll, ReadsAPipeToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileDescriptor reader(ends[0]);
  std::string sent(5000, 'x');
  {
    FileDescriptor writer(ends[1]);
    ASSERT_EQ(::write(writer.get(), sent.data(), sent.size()), ssize_t(sent.size()));
  }
  EXPECT_EQ(read_all(reader.get(), "pipe"), sent);
}

TEST(ReadAll, StopsBeforeMemoryIsFull) {
  TemporaryFolder folder;
  write_file_atomic(folder / "a", "12345");
  EXPECT_EQ(read_file(folder / "a", 5), "12345");
  expect_user_error([&] { read_file(folder / "a", 4); }, {"cannot read", "at most", "name another file"});
  write_file_atomic(folder / "huge", "");
  fs::resize_file(folder / "huge", uintmax_t(1) << 40);  // of zeros that take no space
  expect_user_error([&] { read_file(folder / "huge"); }, {"expected at most 64 MiB, got more"});
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "12345", 5), 5);
  expect_user_error([&] { read_all(ends[0], "a pipe", 4); }, {"cannot read a pipe", "at most"});
  ::close(ends[0]), ::close(ends[1]);
}

TEST(OpenToRead, RefusesADeviceThatMayHaveNoEnd) {
  TemporaryFolder folder;
  fs::create_symlink("/dev/zero", folder / "link");
  for (const fs::path& path : {fs::path("/dev/zero"), folder / "link"}) {
    expect_user_error([&] { read_file(path); }, {"cannot read", path.string(), "it is a pipe or a device"});
    expect_user_error([&] { FileReader{path}; }, {"cannot read", path.string()});
  }
  FileDescriptor zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  expect_user_error([&] { read_all(zero.get(), "standard input"); }, {"cannot read standard input", "a device"});
  EXPECT_EQ(read_file("/dev/null"), "");
}

// Not one that another process would have to open, by whatever link.
TEST(OpenToRead, FollowsNoLinkToAPipe) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  expect_user_error([&] { read_file(folder / "link"); }, {"cannot read", "it is a pipe"});
}

// Whoever opens one waits for the other side, which may never come.
TEST(OpenToRead, WaitsForNoPipe) {
  TemporaryFolder folder;
  fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_user_error([&] { read_file(pipe); }, {pipe.string(), "it is a pipe", "name a file"});
  expect_user_error([&] { FileReader{pipe}; }, {pipe.string(), "it is a pipe"});
  expect_user_error([&] { MappedFile{pipe}; }, {pipe.string(), "it is a pipe"});
}

// As a shell gives it for `<(command)`; nothing of it may be lost because it was not there yet.
TEST(OpenToRead, TakesAPipeThatTheProcessHas) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(::write(ends[1], "late", 4), 4);
    ::close(ends[1]);
  });
  fs::path pipe = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(read_file(pipe), "late");
  expect_user_error([&] { FileReader{pipe}; }, {pipe.string(), "it is a pipe"});
  writer.join();
  ::close(ends[0]);
}

// /dev/full refuses every byte, as a full disk does.
TEST(FileError, TellsWhatToDoWhenTheDiskIsFull) {
  FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  ASSERT_EQ(::write(full.get(), "x", 1), -1);
  int error = errno;
  expect_user_error([&] { file_error("write", "/data/train.bin", error); },
                    {"cannot write /data/train.bin", "No space left", "free some space"});
}

TEST(MakeFolder, MakesParentsAndRefusesAFile) {
  TemporaryFolder folder;
  make_folder(folder / "a/b/c");
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  write_file_atomic(folder / "file", "");
  expect_user_error([&] { make_folder(folder / "file"); }, {"cannot make the folder", "file"});
}

TEST(CheckFolder, RefusesWhatCannotBeMadeAndMakesNothing) {
  TemporaryFolder folder;
  check_folder(folder / "a/b/c");
  EXPECT_FALSE(fs::exists(folder / "a"));
  check_folder(folder.path());
  write_file_atomic(folder / "file", "");
  expect_user_error([&] { check_folder(folder / "file"); }, {"cannot make the folder", "not a folder"});
  expect_user_error([&] { check_folder(folder / "file/x/y"); }, {"file/x/y", "not a folder"});
  check_folder("a/relative/one");
}

TEST(MappedFile, ReleasedBytesAreReadAgain) {
  TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 3'000'000; ++i) content += char(i % 251);
  std::ofstream(folder / "file", std::ios::binary) << content;
  MappedFile file(folder / "file");
  auto read = [&] { return std::string(file.text()) == content; };
  ASSERT_TRUE(read());
  for (auto [at, count] : {std::pair<size_t, size_t>{0, 3'000'000}, {5, 100}, {4096, 4096}, {5000, 2'995'000}}) {
    file.release(file.bytes().subspan(at, count));
    EXPECT_TRUE(read()) << at;
  }
  int64_t before = resident_bytes();
  file.release(file.bytes());
  EXPECT_LT(resident_bytes(), before - 2'500'000);
}

}  // namespace
}  // namespace tokamak
