#include "exec/program.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>

namespace tokamak {

void* TensorStore::get(const std::string& name, const ValueType& type) {
  auto [at, fresh] = tensors_.try_emplace(name);
  Tensor& tensor = at->second;
  if (fresh) {
    tensor.type = type;
    tensor.memory = backend_.allocate(num_bytes(type));
  }
  TOKAMAK_CHECK(tensor.type == type, "tensor '{}' is {} and was asked for as {}", name, to_string(tensor.type),
                to_string(type));
  return tensor.memory->data();
}

const TensorStore::Tensor& TensorStore::find(const std::string& name) const {
  auto at = tensors_.find(name);
  TOKAMAK_CHECK(at != tensors_.end(), "there is no tensor '{}'", name);
  return at->second;
}

const ValueType& TensorStore::type(const std::string& name) const { return find(name).type; }

std::vector<std::string> TensorStore::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

int64_t TensorStore::bytes() const {
  int64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += num_bytes(tensor.type);
  return total;
}

void TensorStore::write(const std::string& name, const void* from, int64_t bytes) {
  const Tensor& tensor = find(name);
  TOKAMAK_CHECK(bytes <= num_bytes(tensor.type), "'{}' has {} bytes, not {}", name, num_bytes(tensor.type), bytes);
  backend_.copy_in(tensor.memory->data(), from, bytes);
}

void TensorStore::read(const std::string& name, void* to, int64_t bytes) const {
  const Tensor& tensor = find(name);
  TOKAMAK_CHECK(bytes <= num_bytes(tensor.type), "'{}' has {} bytes, not {}", name, num_bytes(tensor.type), bytes);
  backend_.copy_out(to, tensor.memory->data(), bytes);
}

Program::Program(Plan plan, Backend& backend, TensorStore& store, std::shared_ptr<Memory> arena)
    : plan_(std::move(plan)), backend_(backend), arena_(std::move(arena)) {
  const Graph& graph = plan_.graph;
  for (const Argument& argument : graph.arguments()) {
    const ValueType& type = graph.type(argument.value);
    if (argument.kind != Argument::Kind::kInput) {
      arguments_[argument.value] = store.get(argument.name, type);
      continue;
    }
    inputs_.push_back(backend.allocate(num_bytes(type)));
    arguments_[argument.value] = inputs_.back()->data();
  }
  if (!arena_) arena_ = backend.allocate(plan_.arena_bytes);
  for (const Launch& launch : plan_.launches) {
    const Node& node = graph.nodes()[size_t(launch.node)];
    Bound bound;
    bound.kernel = backend.compile(graph, node);
    for (ValueId input : node.inputs) bound.inputs.push_back(address(input));
    for (ValueId output : node.outputs) bound.outputs.push_back(address(output));
    launches_.push_back(std::move(bound));
  }
  share_workspace();
}

void Program::share_workspace() {
  int64_t bytes = 0;
  for (const Bound& launch : launches_) bytes = std::max(bytes, launch.kernel->workspace_bytes());
  if (bytes == 0) return;
  workspace_ = backend_.allocate(bytes);
  for (const Bound& launch : launches_) launch.kernel->use_workspace(workspace_->data());
}

void* Program::address(ValueId value) const {
  const Location& location = plan_.locations[size_t(value)];
  if (location.argument != kNoValue) return arguments_.at(location.argument);
  return static_cast<char*>(arena_->data()) + location.offset;
}

bool Program::has_input(std::string_view name) const { return plan_.graph.find_argument(name) != kNoValue; }

void Program::set_input(std::string_view name, const void* from, int64_t bytes) {
  ValueId value = plan_.graph.find_argument(name);
  TOKAMAK_CHECK(value != kNoValue && bytes == num_bytes(plan_.graph.type(value)), "no input '{}' of {} bytes", name,
                bytes);
  backend_.copy_in(address(value), from, bytes);
}

void Program::run() {
  for (Bound& launch : launches_) launch.kernel->run(launch.inputs, launch.outputs);
  copy_back();
}

void Program::run_timed(std::vector<double>& seconds) {
  using Clock = std::chrono::steady_clock;
  seconds.resize(launches_.size(), 0.0);
  for (size_t i = 0; i < launches_.size(); ++i) {
    auto begin = Clock::now();
    launches_[i].kernel->run(launches_[i].inputs, launches_[i].outputs);
    seconds[i] += std::chrono::duration<double>(Clock::now() - begin).count();
  }
  copy_back();
}

void Program::copy_back() {
  for (const CopyBack& copy : plan_.copies)
    backend_.copy(arguments_.at(copy.target), address(copy.value), num_bytes(plan_.graph.type(copy.value)));
}

void Program::get_result(std::string_view name, void* to, int64_t bytes) const {
  ValueId value = plan_.graph.find_result(name);
  TOKAMAK_CHECK(value != kNoValue && bytes == num_bytes(plan_.graph.type(value)), "no result '{}' of {} bytes", name,
                bytes);
  backend_.copy_out(to, address(value), bytes);
}

float Program::get_scalar(std::string_view name) const {
  float value = 0;
  get_result(name, &value, sizeof value);
  return value;
}

}  // namespace tokamak
