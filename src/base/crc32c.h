// CRC-32C (Castagnoli), as record files of TensorFlow's kind have it. Tests: tests/base/crc32c_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

uint32_t crc32c(std::string_view bytes);

}  // namespace tokamak
