#include "base/bus_error.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

TEST(BusErrorDeathTest, NamesTheFileThatWasCutShort) {
  TemporaryFolder folder;
  write_file_atomic(folder / "mapped file", std::string(100'000, 'x'));
  auto read_cut_file = [&] {
    explain_bus_errors();
    MappedFile file(folder / "mapped file");
    std::filesystem::resize_file(folder / "mapped file", 10);
    volatile char last = file.text().back();
    (void)last;
  };
  EXPECT_EXIT(read_cut_file(), testing::ExitedWithCode(1),
              "error: .file. cannot read /.*/mapped file: it was cut short");
}

}  // namespace
}  // namespace tokamak
