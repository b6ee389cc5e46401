// Runs a graph on the CPU backend and gives what interpret() gives, so that the two can be compared.
#pragma once

#include "backend/cpu/cpu_backend.h"
#include "exec/program.h"
#include "graph/host_tensor.h"
#include "graph/platform.h"
#include "ops/float8.h"
#include "ops/interpret.h"
#include "plan/plan.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace tokamak::test {

/// The tensor's elements as a backend stores them.
inline std::vector<std::byte> to_bytes(const HostTensor& tensor) {
  std::vector<std::byte> bytes(size_t(num_bytes(tensor.type)));
  auto size = size_t(dtype_bytes(tensor.type.dtype));
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    auto single = float(tensor.data[i]);
    uint32_t word = std::bit_cast<uint32_t>(single);
    if (!is_float(tensor.type.dtype)) word = uint32_t(int32_t(tensor.data[i]));
    if (tensor.type.dtype == DType::kBF16) word >>= 16;  // tests give bf16 values only
    if (tensor.type.dtype == DType::kF16) word = std::bit_cast<uint16_t>(_Float16(single));
    std::memcpy(&bytes[i * size], &word, size);
  }
  return bytes;
}

inline HostTensor from_bytes(const ValueType& type, const std::vector<std::byte>& bytes) {
  HostTensor tensor(type);
  auto size = size_t(dtype_bytes(type.dtype));
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    uint32_t word = 0;
    std::memcpy(&word, &bytes[i * size], size);
    if (type.dtype == DType::kF32) tensor.data[i] = std::bit_cast<float>(word);
    if (type.dtype == DType::kBF16) tensor.data[i] = std::bit_cast<float>(word << 16);
    if (type.dtype == DType::kF16) tensor.data[i] = float(std::bit_cast<_Float16>(uint16_t(word)));
    if (type.dtype == DType::kI32) tensor.data[i] = std::bit_cast<int32_t>(word);
    if (type.dtype == DType::kU8) tensor.data[i] = word;
    if (is_float8(type.dtype)) tensor.data[i] = decode_float8(type.dtype, uint8_t(word));
  }
  return tensor;
}

/// Plans, compiles and runs the graph once, from `arguments` as for interpret(); where the rank stands on the mesh of
/// `ranks` comes from there.
inline Interpretation run_on(Backend& backend, Graph graph, const std::vector<HostTensor>& arguments, int streams = 1,
                             const MeshRanks* ranks = nullptr) {
  std::vector<Argument> names = graph.arguments();
  TensorStore store(backend);
  Program program(make_plan(std::move(graph), {}, streams), backend, store, {.ranks = ranks});
  const Graph& planned = program.plan().graph;
  for (size_t i = 0; i < names.size(); ++i) {
    if (ranks && ranks->coordinate_of(names[i])) continue;
    std::vector<std::byte> bytes = to_bytes(arguments[i]);
    if (names[i].kind == Argument::Kind::kInput)
      program.set_input(names[i].name, bytes.data(), int64_t(bytes.size()));
    else
      store.write(names[i].name, bytes.data(), int64_t(bytes.size()));
  }
  program.run();
  Interpretation out;
  for (const Result& result : planned.results()) {
    const ValueType& type = planned.type(result.value);
    std::vector<std::byte> bytes(size_t(num_bytes(type)));
    program.get_result(result.name, bytes.data(), int64_t(bytes.size()));
    out.results.push_back(from_bytes(type, bytes));
  }
  for (const Update& update : planned.updates()) {
    const ValueType& type = planned.type(update.target);
    std::vector<std::byte> bytes(size_t(num_bytes(type)));
    store.read(planned.argument_of(update.target)->name, bytes.data(), int64_t(bytes.size()));
    out.updates.push_back(from_bytes(type, bytes));
  }
  return out;
}

inline Interpretation run_on_cpu(Graph graph, const std::vector<HostTensor>& arguments) {
  return run_on(*cpu::make_backend(), std::move(graph), arguments);
}

}  // namespace tokamak::test
