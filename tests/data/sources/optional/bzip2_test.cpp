#include <bzlib.h>

#include "tests/data/sources/compressed_test.h"

namespace tokamak {
namespace {

using Bzip2Test = CompressedTest;

std::string bzip2_bytes(const std::string& bytes) {
  std::string out(bytes.size() + bytes.size() / 100 + 600, '\0');
  auto size = unsigned(out.size());
  EXPECT_EQ(
      BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(bytes.data()), unsigned(bytes.size()), 1, 0, 0),
      BZ_OK);
  out.resize(size);
  return out;
}

TEST_F(Bzip2Test, ReadsTextAndJsonl) { expect_text_and_jsonl(".bz2", bzip2_bytes); }

TEST_F(Bzip2Test, ReadsSeveralStreamsAsOne) {
  std::string text = numbers(200'000);
  expect_one_text(".bz2", bzip2_bytes(text) + bzip2_bytes("") + bzip2_bytes("end"), text + "end");
  expect_one_text(".bz2", bzip2_bytes("") + bzip2_bytes("end"), "end");
}

TEST_F(Bzip2Test, EveryDamageIsFound) { expect_damage_is_found(".bz2", bzip2_bytes); }

TEST_F(Bzip2Test, NamesThePlaceOfDamage) { expect_place_of_damage("bzip2", ".bz2", bzip2_bytes); }

}  // namespace
}  // namespace tokamak
