// The loader's memory does not grow with the data.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/system.h"
#include "data/loader.h"
#include "data/open_source.h"
#include "data/token_dataset.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

TEST(LoaderMemory, StaysSmallOnAFileOf200Gigabytes) {
  TemporaryFolder folder;
  std::filesystem::path path = folder / "sparse.u16";
  std::ofstream(path).close();
  std::error_code error;
  std::filesystem::resize_file(path, uintmax_t(200'000) * kMegabyte, error);
  if (error) GTEST_SKIP() << "no file of 200 GB can be made here: " << error.message();
  auto tokens = std::shared_ptr<const TokenArray>(open_tokens({path}, {.format = "raw"}));
  ASSERT_EQ(tokens->size(), 100'000 * kMegabyte);
  auto corpus = std::make_shared<const Corpus>(Corpus::Datasets{make_token_dataset("sparse", tokens, 1024)},
                                               std::vector<double>{1}, 1024, 1);
  Loader loader(corpus, {.batch = 64, .workers = 2});
  Batch batch;
  loader.next(batch);
  int64_t before = resident_bytes();
  // 6,400 windows from all over: mapped, their pages with what the kernel reads around them would be 100 MB or more.
  for (int i = 0; i < 100; ++i) loader.next(batch);
  EXPECT_LT(resident_bytes() - before, 30 * kMegabyte);
}

}  // namespace
}  // namespace tokamak
