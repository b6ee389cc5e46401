#include <lzma.h>

#include "tests/data/sources/compressed_test.h"

namespace tokamak {
namespace {

using XzTest = CompressedTest;

std::string xz_bytes(const std::string& bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  size_t size = 0;
  lzma_ret status =
      lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(bytes.data()),
                              bytes.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size());
  EXPECT_EQ(status, LZMA_OK);
  out.resize(size);
  return out;
}

TEST_F(XzTest, ReadsTextAndJsonl) { expect_text_and_jsonl(".xz", xz_bytes); }

TEST_F(XzTest, ReadsSeveralStreamsAsOne) {
  std::string text = numbers(200'000);
  expect_one_text(".xz", xz_bytes(text) + xz_bytes("") + xz_bytes("end"), text + "end");
  expect_one_text(".xz", xz_bytes("") + xz_bytes("end"), "end");
}

TEST_F(XzTest, EveryDamageIsFound) { expect_damage_is_found(".xz", xz_bytes); }

TEST_F(XzTest, NamesThePlaceOfDamage) { expect_place_of_damage("xz", ".xz", xz_bytes); }

}  // namespace
}  // namespace tokamak
