// model.safetensors, as strangers make it: what is accepted is what a slow reader finds, value by value.
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "tests/fuzz/fuzz_file.h"

using namespace tokamak;
using nlohmann::json;

namespace {

struct SlowTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  size_t begin = 0, end = 0;
};
using SlowTensors = std::map<std::string, SlowTensor>;

bool is_list_of_sizes(const json& value) {
  if (!value.is_array()) return false;
  for (const json& size : value)
    if (!size.is_number_unsigned() || size.get<uint64_t>() > uint64_t(1) << 53) return false;
  return true;
}

/// What the shape needs; nothing where a product is beyond 64 bits.
std::optional<size_t> bytes_of(const SlowTensor& tensor, int64_t element) {
  __int128 bytes = element;
  for (int64_t size : tensor.shape) {
    bytes *= size;
    if (bytes > INT64_MAX) return {};
  }
  return size_t(bytes);
}

/// Each byte of the data is of one tensor, and none that is empty lies within another.
bool covers(const SlowTensors& tensors, size_t size) {
  std::vector<int> times(size);
  for (const auto& [name, tensor] : tensors) {
    for (size_t at = tensor.begin; at < tensor.end; ++at) ++times[at];
    for (const auto& [other_name, other] : tensors)
      if (tensor.begin == tensor.end && other.begin < tensor.begin && tensor.begin < other.end) return false;
  }
  return std::all_of(times.begin(), times.end(), [](int count) { return count == 1; });
}

bool is_metadata(const json& value) {
  return value.is_object() && std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); });
}

std::optional<SlowTensor> tensor_from(const json& entry, size_t data) {
  static const std::map<std::string, int64_t> kSizes = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4},    {"I32", 4},
                                                        {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2},    {"U16", 2},
                                                        {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}};
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string()) return {};
  if (!entry.contains("shape") || !is_list_of_sizes(entry["shape"])) return {};
  if (!entry.contains("data_offsets") || !is_list_of_sizes(entry["data_offsets"])) return {};
  auto offsets = entry["data_offsets"].get<std::vector<size_t>>();
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data) return {};
  SlowTensor tensor{entry["dtype"], entry["shape"], offsets[0], offsets[1]};
  if (auto size = kSizes.find(tensor.dtype); size != kSizes.end())
    if (bytes_of(tensor, size->second) != tensor.end - tensor.begin) return {};
  return tensor;
}

/// The slow, obvious twin; nothing where the file is wrong.
std::optional<SlowTensors> read_slowly(std::string_view file, std::string_view& data) {
  if (file.size() < 8) return {};
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t(uint8_t(file[i])) << 8 * i;
  if (length > file.size() - 8) return {};
  data = file.substr(8 + length);
  json header = parse_json(file.substr(8, length));
  if (!header.is_object()) return {};
  SlowTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!is_metadata(entry)) return {};
      continue;
    }
    std::optional<SlowTensor> tensor = tensor_from(entry, data.size());
    if (!tensor) return {};
    tensors[name] = *tensor;
  }
  if (!covers(tensors, data.size())) return {};
  return tensors;
}

float half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                                : std::ldexp(exponent ? 1024 + fraction : fraction, std::max(exponent, 1) - 25);
  return float(bits & 0x8000 ? -value : value);
}

float value_of(std::string_view bytes, const std::string& dtype, size_t i) {
  uint32_t wide = 0;
  uint16_t narrow = 0;
  if (dtype == "F32") return std::memcpy(&wide, bytes.data() + 4 * i, 4), std::bit_cast<float>(wide);
  std::memcpy(&narrow, bytes.data() + 2 * i, 2);
  return dtype == "BF16" ? std::bit_cast<float>(uint32_t(narrow) << 16) : half_value(narrow);
}

void compare(const SafetensorsReader& reader, const std::string& name, const SlowTensor& slow, std::string_view data) {
  data = data.substr(slow.begin, slow.end - slow.begin);
  std::span<const std::byte> bytes = reader.bytes(name);
  if (!std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(data)).begin(),
                  std::as_bytes(std::span(data)).end()))
    fuzz_failure("other bytes");
  if (slow.dtype != "F32" && slow.dtype != "BF16" && slow.dtype != "F16") return;
  if (reader.type(name).shape != slow.shape) fuzz_failure("another shape");
  std::vector<float> values = reader.floats(name);
  if (values.size() != data.size() / (slow.dtype == "F32" ? 4 : 2)) fuzz_failure("another number of values");
  for (size_t i = 0; i < values.size(); ++i) {
    float expected = value_of(data, slow.dtype, i);
    if (values[i] != expected && !(std::isnan(values[i]) && std::isnan(expected))) fuzz_failure("another value");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzFile file(data, size);
  std::string_view text(reinterpret_cast<const char*>(data), size), tensor_data;
  std::optional<SlowTensors> slow = read_slowly(text, tensor_data);
  std::optional<SafetensorsReader> reader;
  try {
    reader.emplace(file.path());
  } catch (const UserError&) {
  }
  if (reader.has_value() != slow.has_value())
    fuzz_failure(reader ? "a wrong file is taken" : "a right file is refused");
  if (!reader) return 0;
  if (reader->names().size() != slow->size()) fuzz_failure("other tensors");
  for (const auto& [name, tensor] : *slow) compare(*reader, name, tensor, tensor_data);
  return 0;
}
