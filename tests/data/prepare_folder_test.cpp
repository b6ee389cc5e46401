#include "data/prepare_folder.h"

#include <gtest/gtest.h>

#include "data/prepare.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(PrepareFolder, IsForOneProcessAtATime) {
  TemporaryFolder folder;
  {
    PrepareFolder first(folder.path());
    expect_user_error([&] { PrepareFolder second(folder.path()); },
                      {folder.path().string(), "another `prepare` is working there", "--out"});
  }
  PrepareFolder third(folder.path());
  third.remove();
}

TEST(PrepareFolder, RemovesOnlyWhatItMade) {
  TemporaryFolder folder;
  PrepareFolder made(folder / "new");
  write_file_quickly(made.path() / "something", "x");
  made.remove();
  EXPECT_FALSE(fs::exists(folder / "new"));
  PrepareFolder found(folder.path());
  found.remove();
  EXPECT_TRUE(fs::exists(folder.path()));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(PrepareFolder, ClearsWhatIsInIt) {
  TemporaryFolder folder;
  PrepareFolder work(folder.path());
  make_folder(work.path() / "a/b");
  write_file_quickly(work.path() / "a/b/c", "x");
  work.clear();
  EXPECT_FALSE(fs::exists(work.path() / "a"));
  EXPECT_THROW(PrepareFolder second(folder.path()), UserError);  // the lock is still held
}

}  // namespace
}  // namespace tokamak
