// Shards of MosaicML's streaming format as its writer makes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

inline std::string little_endian(uint64_t number, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += char(number >> (8 * i));
  return text;
}

/// A sample of columns that all say their own sizes.
inline std::string mds_sample(const std::vector<std::string>& values) {
  std::string sizes, all;
  for (const std::string& value : values) {
    sizes += little_endian(value.size());
    all += value;
  }
  return sizes + all;
}

/// `config`: the columns, as JSON.
inline std::string mds_shard(const std::vector<std::string>& samples, std::string_view config) {
  uint64_t at = 4 * (samples.size() + 2) + config.size();
  std::string head = little_endian(samples.size()) + little_endian(at), body;
  for (const std::string& sample : samples) {
    head += little_endian(at += sample.size());
    body += sample;
  }
  return head + std::string(config) + body;
}

}  // namespace tokamak
