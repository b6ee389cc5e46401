#include "ops/host_storage.h"

#include "ops/float8.h"
#include "ops/scalar_math.h"

#include <bit>
#include <cstring>

namespace tokamak {
namespace {

template <typename T>
T read(const std::byte* raw, int64_t i) {
  T value;
  std::memcpy(&value, raw + size_t(i) * sizeof value, sizeof value);
  return value;
}
template <typename T>
void write(std::byte* raw, int64_t i, T value) {
  std::memcpy(raw + size_t(i) * sizeof value, &value, sizeof value);
}

}  // namespace

HostTensor from_storage(const ValueType& type, const std::byte* raw) {
  HostTensor tensor(type);
  for (int64_t i = 0; i < tensor.size(); ++i) switch (type.dtype) {
      case DType::kF32: tensor[i] = read<float>(raw, i); break;
      case DType::kBF16: tensor[i] = std::bit_cast<float>(uint32_t(read<uint16_t>(raw, i)) << 16); break;
      case DType::kF16: tensor[i] = double(read<_Float16>(raw, i)); break;
      case DType::kF8E4M3:
      case DType::kF8E5M2: tensor[i] = decode_float8(type.dtype, read<uint8_t>(raw, i)); break;
      case DType::kI32: tensor[i] = read<int32_t>(raw, i); break;
      case DType::kU8: tensor[i] = read<uint8_t>(raw, i); break;
    }
  return tensor;
}

std::vector<std::byte> to_storage(const HostTensor& tensor) {
  std::vector<std::byte> raw(size_t(num_bytes(tensor.type)));
  for (int64_t i = 0; i < tensor.size(); ++i) switch (tensor.type.dtype) {
      case DType::kF32: write(raw.data(), i, float(tensor[i])); break;
      case DType::kBF16:
        write(raw.data(), i, uint16_t(std::bit_cast<uint32_t>(scalar::round_bf16(float(tensor[i]))) >> 16));
        break;
      case DType::kF16: write(raw.data(), i, _Float16(tensor[i])); break;
      case DType::kF8E4M3:
      case DType::kF8E5M2:
        write(raw.data(), i, encode_float8(tensor.type.dtype, round_float8(tensor.type.dtype, tensor[i])));
        break;
      case DType::kI32: write(raw.data(), i, int32_t(tensor[i])); break;
      case DType::kU8: write(raw.data(), i, uint8_t(tensor[i])); break;
    }
  return raw;
}

}  // namespace tokamak
