#include <zstd.h>

#include "tests/data/sources/compressed_test.h"

namespace tokamak {
namespace {

using ZstdTest = CompressedTest;

/// One frame with a checksum.
std::string zstd_bytes(const std::string& bytes, int window_log) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_outBuffer output = {out.data(), out.size(), 0};
  for (size_t at = 0, left = 1; left != 0;) {  // in pieces, so that the frame does not know its size
    ZSTD_inBuffer input = {bytes.data() + at, std::min(bytes.size() - at, size_t(1000)), 0};
    bool last = at + input.size == bytes.size();
    left = ZSTD_compressStream2(context, &output, &input, last ? ZSTD_e_end : ZSTD_e_continue);
    at += input.pos;
    if (!last) left = 1;
  }
  out.resize(output.pos);
  ZSTD_freeCCtx(context);
  return out;
}

std::string zstd_bytes(const std::string& bytes) { return zstd_bytes(bytes, 0); }

const std::string kSkipped("\x5a\x2a\x4d\x18\x03\0\0\0abc", 11);  // a frame with 3 bytes of someone's own

TEST_F(ZstdTest, ReadsTextAndJsonl) { expect_text_and_jsonl(".zst", zstd_bytes); }

TEST_F(ZstdTest, ReadsSeveralFramesAsOne) {
  std::string text = numbers(200'000);
  std::string bytes = kSkipped + zstd_bytes(text) + zstd_bytes("") + kSkipped + zstd_bytes("end", 27);
  expect_one_text(".zst", bytes, text + "end");
}

TEST_F(ZstdTest, EveryDamageIsFound) { expect_damage_is_found(".zst", zstd_bytes); }

TEST_F(ZstdTest, NamesThePlaceOfDamage) { expect_place_of_damage("zstd", ".zst", zstd_bytes); }

}  // namespace
}  // namespace tokamak
