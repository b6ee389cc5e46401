#include "train/utilization.h"

#include "ops/flop_rate.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

// Dense rates in TFLOP/s with fp32 accumulation, from NVIDIA's datasheets and architecture white papers (H100/H200
// Tensor Core GPU, A100, L40S, Ada AD102, Blackwell B200); where those give the rate with 2:4 sparsity,
// half of it. bf16 and fp16 are the same there.
struct DatasheetRow {
  std::string_view name;  // a piece of the device's name; the first row that matches counts
  double half, tf32, fp32;
};
constexpr DatasheetRow kDatasheet[] = {
    {"H200 NVL", 836, 418, 60},  {"H200", 989, 494, 67},        {"H100 NVL", 836, 418, 60},
    {"H100 PCIe", 756, 378, 51}, {"H100", 989, 494, 67},        {"A100", 312, 156, 19.5},
    {"L40S", 362, 183, 91.6},    {"RTX 4090", 165, 82.6, 82.6}, {"B200", 2250, 1120, 75},
};

// Variants of the same name with fewer or slower units.
constexpr std::string_view kOtherVariants[] = {"MIG", "Laptop", "4090 D", "GB200"};

const DatasheetRow* find_row(std::string_view device) {
  auto contains = [&](std::string_view piece) { return device.find(piece) != std::string_view::npos; };
  if (std::any_of(std::begin(kOtherVariants), std::end(kOtherVariants), contains)) return nullptr;
  for (const DatasheetRow& row : kDatasheet)
    if (contains(row.name)) return &row;
  return nullptr;
}

}  // namespace

Peak peak_of(const Target& target, Precision precision) {
  std::string_view name = precision_name(precision);
  const DatasheetRow* row = find_row(target.name);
  if (!row) {
    double rate = matmul_rate(target, precision);
    return {rate, fmt::format("{:.3g} TFLOP/s (matmul rate, {})", rate * 1e-12, name)};
  }
  double tera = precision == Precision::kFp32 ? row->fp32 : precision == Precision::kTf32 ? row->tf32 : row->half;
  return {tera * 1e12, fmt::format("{:.4g} TFLOP/s ({} datasheet, {} dense)", tera, row->name, name)};
}

}  // namespace tokamak
