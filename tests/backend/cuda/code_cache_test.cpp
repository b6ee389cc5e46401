// Compiled kernels on disk: machine code that only its own user may have put there.
#include "backend/cuda/code_cache.h"

#include "base/sha256.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace tokamak::cuda {
namespace {

namespace fs = std::filesystem;

const std::string kCode("code\0with zeros", 15);

fs::path own_folder(const TemporaryFolder& folder) { return folder / ("kernels-" + std::to_string(::geteuid())); }

mode_t mode_of(const fs::path& path) {
  struct stat facts {};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 07777;
}

TEST(CodeCache, KeepsCodeForItsUserAlone) {
  TemporaryFolder folder;
  CodeCache(folder.path()).put("name", kCode);
  EXPECT_EQ(CodeCache(folder.path()).find("name"), kCode);
  EXPECT_EQ(CodeCache(folder.path()).find("other"), "");
  EXPECT_EQ(mode_of(own_folder(folder)), 0700u);
  EXPECT_EQ(mode_of(own_folder(folder) / "name"), 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(own_folder(folder)), {}), 1) << "no temporary file is left";
}

TEST(CodeCache, MakesTheFoldersAboveIt) {
  TemporaryFolder folder;
  CodeCache(folder / "a" / "b").put("name", kCode);
  EXPECT_EQ(CodeCache(folder / "a" / "b").find("name"), kCode);
}

TEST(CodeCache, KeepsNothingWithoutAFolder) {
  CodeCache none{fs::path()};
  none.put("name", kCode);
  EXPECT_EQ(none.find("name"), "");
  CodeCache impossible("/dev/null/cache");
  impossible.put("name", kCode);
  EXPECT_EQ(impossible.find("name"), "");
}

// What lies in a folder into which others could write may be theirs.
TEST(CodeCache, RefusesAFolderThatOthersMayOpen) {
  for (mode_t mode : {0770, 0707, 0711, 0750}) {
    TemporaryFolder folder;
    CodeCache(folder.path()).put("name", kCode);
    ASSERT_EQ(::chmod(own_folder(folder).c_str(), mode), 0);
    CodeCache open_to_others(folder.path());
    EXPECT_EQ(open_to_others.find("name"), "") << std::oct << mode;
    open_to_others.put("new", kCode);
    EXPECT_FALSE(fs::exists(own_folder(folder) / "new")) << std::oct << mode;
  }
}

TEST(CodeCache, RefusesALinkToAFolder) {
  TemporaryFolder folder, elsewhere;
  CodeCache(elsewhere.path()).put("name", kCode);
  fs::create_directory_symlink(own_folder(elsewhere), own_folder(folder));
  CodeCache linked(folder.path());
  EXPECT_EQ(linked.find("name"), "");
  linked.put("new", kCode);
  EXPECT_FALSE(fs::exists(own_folder(elsewhere) / "new"));
}

TEST(CodeCache, RefusesAnotherUsersFolderAndFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  TemporaryFolder folder;
  CodeCache(folder.path()).put("name", kCode);
  ASSERT_EQ(::chown((own_folder(folder) / "name").c_str(), 12345, 12345), 0);
  EXPECT_EQ(CodeCache(folder.path()).find("name"), "");
  ASSERT_EQ(::chown((own_folder(folder) / "name").c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(own_folder(folder).c_str(), 12345, 12345), 0);
  EXPECT_EQ(CodeCache(folder.path()).find("name"), "");
}

TEST(CodeCache, ReadsNoLinksAndNothingThatIsNoFile) {
  TemporaryFolder folder;
  CodeCache cache(folder.path());
  cache.put("name", kCode);
  fs::create_symlink(own_folder(folder) / "name", own_folder(folder) / "link");
  fs::create_directory(own_folder(folder) / "folder");
  ASSERT_EQ(::mkfifo((own_folder(folder) / "pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "folder", "pipe"}) EXPECT_EQ(cache.find(name), "") << name;
}

/// Keeps codes of the same names as others do at the same time; what is wrong is the exit status.
[[noreturn]] void use_shared(const CodeCache& cache) {
  for (int i = 0; i < 300; ++i) {
    std::string name = "name" + std::to_string(i % 3), code = name + std::string(20'000, 'x');
    cache.put(name, code);
    if (cache.find(name) != code) ::_exit(1);
  }
  ::_exit(0);
}

TEST(CodeCache, SeveralProcessesMayShareIt) {
  TemporaryFolder folder;
  CodeCache cache(folder.path());  // one that is opened later may take what is about to be locked for a leftover
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) use_shared(cache);
  }
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(own_folder(folder)), {}), 3) << "no temporary file is left";
}

TEST(CodeCache, RemovesWhatKilledProcessesLeftButNothingOfLivingOnes) {
  TemporaryFolder folder;
  CodeCache(folder.path()).put("name", kCode);
  fs::path dead = own_folder(folder) / "name.0123456789abcdef.tmp",
           living = own_folder(folder) / "a.00000000ffffffff.tmp";
  for (const fs::path& path : {dead, living}) write_shared_file(path, "half of a");
  FileDescriptor writer(::open(living.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
  CodeCache cache(folder.path());
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living));
  EXPECT_EQ(cache.find("name"), kCode);
}

TEST(CodeCache, ADamagedFileIsNone) {
  TemporaryFolder folder;
  CodeCache cache(folder.path());
  fs::path path = own_folder(folder) / "name";
  std::string whole = sha256(kCode) + kCode, flipped = whole;
  flipped.back() ^= 1;
  for (const std::string& content : {std::string(), std::string("short"), whole.substr(0, 70), flipped}) {
    write_file_atomic(path, content);
    EXPECT_EQ(cache.find("name"), "") << content.size();
    cache.put("name", kCode);
    EXPECT_EQ(cache.find("name"), kCode) << "it is made again";
  }
}

}  // namespace
}  // namespace tokamak::cuda
