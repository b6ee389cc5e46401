#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tokamak {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, IsThatOfTheStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += char(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

}  // namespace
}  // namespace tokamak
