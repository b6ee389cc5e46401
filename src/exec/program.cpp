#include "exec/program.h"

#include "base/communication_error.h"
#include "base/divide.h"
#include "base/error.h"
#include "exec/collective_kernel.h"
#include "plan/memory.h"  // value_name
#include "plan/recording.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace tokamak {
namespace {

// What went wrong in a kernel, with the node that it is of.
[[noreturn]] void rethrow_named(const Graph& graph, int node, const std::exception& error) {
  const Node& n = graph.nodes()[size_t(node)];
  std::string what = n.outputs.empty() ? "" : fmt::format("{}, ", value_name(graph, n.outputs[0]));
  throw std::runtime_error(fmt::format("{} (in {}node {} of '{}')", error.what(), what, node, graph.name()));
}

template <typename Work>
auto with_node(const Graph& graph, int node, const Work& work) {
  try {
    return work();
  } catch (const UserError&) {
    throw;
  } catch (const CommunicationError&) {
    throw;  // the same text on all ranks
  } catch (const std::exception& error) {
    rethrow_named(graph, node, error);
  }
}

}  // namespace

Program::Program(Plan plan, Backend& backend, TensorStore& store, ProgramOptions options)
    : plan_(std::move(plan)), backend_(backend), ranks_(options.ranks), arena_(std::move(options.arena)),
      record_(options.record && is_to_record(plan_)) {
  const Graph& graph = plan_.graph;
  store.make(graph);
  for (const Argument& argument : graph.arguments()) {
    if (argument.kind != Argument::Kind::kInput) {
      arguments_[argument.value] = store.data(argument.name);
      if (int64_t buffers = store.buffers(argument.name); buffers > 1) {
        for (int64_t buffer = 0; buffer < buffers; ++buffer)
          buffers_[argument.value].push_back(store.data(argument.name, buffer));
        period_ = std::lcm(period_, buffers);
      } else if (options.odd_states && options.odd_states->contains(argument.name)) {
        buffers_[argument.value] = {store.data(argument.name), store.data(options.odd_states->at(argument.name))};
        period_ = std::lcm(period_, 2);
      }
      continue;
    }
    inputs_.push_back(backend.allocate(num_bytes(graph.type(argument.value))));
    arguments_[argument.value] = inputs_.back()->data();
  }
  set_coordinates();
  if (!arena_) arena_ = backend.allocate(plan_.arena_bytes);
  if (options.chain) prepare_chain();
  for (const Launch& launch : plan_.launches) bind(launch);
  backend_.end_compiling();
  make_events();
  for (int stream = 0; stream < num_streams(); ++stream) share_workspace(stream);
}

void Program::bind(const Launch& launch) {
  const Graph& graph = plan_.graph;
  Bound bound{
      .node = launch.node, .stream = launch.stream, .after = launch.after, .after_last_run = launch.after_last_run};
  bound.kernel = with_node(graph, launch.node, [&] { return make_kernel(launch); });
  record_ = record_ && !bound.kernel->by_reference();
  for (ValueId output : graph.nodes()[size_t(launch.node)].outputs) {
    ValueId argument = plan_.locations[size_t(output)].argument;
    bound.changes = bound.changes || (argument != kNoValue && is_kept(argument));
  }
  take_addresses(bound);
  launches_.push_back(std::move(bound));
}

bool Program::is_kept(ValueId argument) const {
  const Argument* known = plan_.graph.argument_of(argument);
  return known && known->kind != Argument::Kind::kInput && !is_scratch(known->spec.role);
}

void Program::take_addresses(Bound& bound) const {
  const Node& node = plan_.graph.nodes()[size_t(bound.node)];
  bound.inputs.clear(), bound.outputs.clear();
  for (ValueId input : node.inputs) bound.inputs.push_back(address(input));
  for (ValueId output : node.outputs) bound.outputs.push_back(address(output));
}

void Program::bind_buffers(int64_t micro_batch) {
  if (buffers_.empty()) return;
  for (const auto& [state, buffers] : buffers_) arguments_[state] = buffers[size_t(micro_batch) % buffers.size()];
  for (Bound& launch : launches_) take_addresses(launch);
}

std::unique_ptr<Kernel> Program::make_kernel(const Launch& launch) {
  const Node& node = plan_.graph.nodes()[size_t(launch.node)];
  if (const Chain::Link* link = chain_ ? chain_->link(size_t(&launch - plan_.launches.data())) : nullptr)
    return make_link(node, *link);
  if (!is_of_ranks(node)) return backend_.compile_on(launch.stream, plan_.graph, node);
  TOKAMAK_CHECK(ranks_, "a step of several ranks was given to one");
  return make_collective_kernel(*ranks_, backend_, launch.stream, plan_.graph, node);
}

void Program::prepare_chain() {
  ChainCompiler* compiler = backend_.chains();
  if (!compiler) return;
  chain_ = find_chain(plan_, [&](const Node& node) { return compiler->can_chain(plan_.graph, node); });
  if (!chain_) return;
  handed_ = backend_.allocate(chain_->bytes);
  std::vector<std::byte> empty(size_t(chain_->bytes), std::byte{0xff});
  backend_.copy_in(handed_->data(), empty.data(), chain_->bytes);
}

std::unique_ptr<Kernel> Program::make_link(const Node& node, const Chain::Link& link) {
  auto* memory = static_cast<std::byte*>(handed_->data());
  return backend_.chains()->compile_link(
      plan_.graph, node,
      {.awaited = link.awaited, .emptied = memory + link.emptied, .emptied_bytes = link.emptied_bytes});
}

void Program::set_coordinates() {
  if (!ranks_) return;
  for (const Argument& argument : plan_.graph.arguments())
    if (std::optional<int32_t> coordinate = ranks_->coordinate_of(argument))
      backend_.copy_in(address(argument.value), &*coordinate, sizeof *coordinate);
}

std::vector<int> Program::nodes_by_reference() const {
  std::vector<int> nodes;
  for (const Bound& launch : launches_)
    if (launch.kernel->by_reference()) nodes.push_back(launch.node);
  return nodes;
}

void Program::make_events() {
  end_.resize(plan_.streams.size());
  if (end_.size() > 1) begin_ = backend_.make_event();
  for (size_t stream = 1; stream < end_.size(); ++stream) end_[stream] = backend_.make_event();
  for (const Bound& launch : launches_)
    for (int before : launch.after)
      if (std::unique_ptr<StreamEvent>& done = launches_[size_t(before)].done; !done) done = backend_.make_event();
}

// Kernels of one stream run one after the other.
void Program::share_workspace(int stream) {
  int64_t bytes = 0;
  for (const Bound& launch : launches_)
    if (launch.stream == stream) bytes = std::max(bytes, launch.kernel->workspace_bytes());
  if (bytes == 0) return;
  workspace_bytes_ += bytes;
  workspaces_.push_back(backend_.allocate(bytes));
  for (const Bound& launch : launches_)
    if (launch.stream == stream) launch.kernel->use_workspace(workspaces_.back()->data());
}

void* Program::address(ValueId value) const {
  if (chain_)
    if (auto place = chain_->places.find(value); place != chain_->places.end())
      return static_cast<char*>(handed_->data()) + place->second;
  const Location& location = plan_.locations[size_t(value)];
  void* storage = location.argument != kNoValue ? arguments_.at(location.argument) : arena_->data();
  return static_cast<char*>(storage) + location.offset;
}

void Program::set_input(std::string_view name, const void* from, int64_t bytes) {
  ValueId value = plan_.graph.find_argument(name);
  TOKAMAK_CHECK(value != kNoValue, "no input '{}'", name);
  const ValueType& type = plan_.graph.type(value);
  const std::vector<Cut>& cuts = plan_.graph.argument_of(value)->spec.cuts;
  Shape whole = whole_shape(type.shape, cuts);
  TOKAMAK_CHECK(bytes == num_bytes({type.dtype, whole}), "no input '{}' of {} bytes", name, bytes);
  observed(observer_, {.kind = Work::Kind::kInput, .plan = &plan_, .bytes = bytes, .name = name}, [&] {
    if (cuts.empty()) return backend_.copy_in(address(value), from, bytes);
    TOKAMAK_CHECK(ranks_, "a step of several ranks was given to one");
    std::vector<std::byte> share(size_t(num_bytes(type)));
    copy_runs(part_runs(whole, cuts, ranks_->mesh(), ranks_->coordinates()), dtype_bytes(type.dtype),
              static_cast<const std::byte*>(from), share.data());
    backend_.copy_in(address(value), share.data(), int64_t(share.size()));
  });
}

bool Program::is_set(const Argument& input) const { return ranks_ && ranks_->coordinate_of(input); }

void Program::launch(Bound& bound) {
  with_node(plan_.graph, bound.node, [&] {
    for (int before : bound.after) launches_[size_t(before)].done->wait(bound.stream);
    if (runs_ > 1)
      for (int stream : bound.after_last_run) end_[size_t(stream)]->wait(bound.stream);
    Work work{
        .kind = Work::Kind::kLaunch, .plan = &plan_, .index = int(&bound - launches_.data()), .stream = bound.stream};
    if (bound.changes) await_copies(bound.stream);
    changes_ += bound.changes;
    observed(observer_, work, [&] { bound.kernel->run(bound.inputs, bound.outputs); });
    if (bound.done) bound.done->record(bound.stream);
  });
}

// What comes before the first change of a stream, most of a step, runs beside them.
void Program::await_copies(int stream) {
  if (!copies_ || awaited_[size_t(stream)]) return;
  awaited_[size_t(stream)] = true;
  copies_->come_before(stream);
}

// Where the host computes, it sees before each kernel whether the run has failed, and not only where it meets the other
// ranks; but what has begun to change is brought to an end.
void Program::launch_all() {
  awaited_.assign(plan_.streams.size(), false);
  fork();
  bool meets_others = ranks_ && !backend_.queue(0);
  int64_t unchanged = changes_;
  RankProgress* progress = progress_of(ranks_);
  for (Bound& bound : launches_) {
    if (meets_others && changes_ == unchanged) ranks_->world().check();
    launch(bound);
    if (progress) progress->moved();
  }
  join();
  copy_back();
}

// All streams begin after what was asked for before the run (inputs, for one) ...
void Program::fork() {
  if (!begin_) return;
  begin_->record(0);
  for (int stream = 1; stream < num_streams(); ++stream) begin_->wait(stream);
}

// ... and those that end with it have ended before what comes after.
void Program::join() {
  for (int stream = 1; stream < num_streams(); ++stream) {
    end_[size_t(stream)]->record(stream);
    if (plan_.streams[size_t(stream)].ends_with_run) end_[size_t(stream)]->wait(0);
  }
}

void Program::end_streams() {
  for (int stream = 1; stream < num_streams(); ++stream) end_[size_t(stream)]->wait(0);
}

// The first run may still prepare things that a recording cannot hold.
void Program::run(int64_t micro_batch) {
  int64_t turn = micro_batch % period_;
  bind_buffers(turn);
  bool replays = record_ && !observer_;
  if (replays && runs_ > 0 && !recorded_.contains(turn))
    recorded_[turn] = backend_.record([this] { launch_all(); });  // null: it cannot
  ++runs_;
  auto recording = recorded_.find(turn);
  if (replays && recording != recorded_.end() && recording->second) return recording->second->replay();
  observed(observer_, {.kind = Work::Kind::kRun, .plan = &plan_}, [this] { launch_all(); });
}

void Program::run_timed(std::vector<double>& seconds) {
  seconds.resize(launches_.size(), 0.0);
  awaited_.assign(plan_.streams.size(), false);
  auto launch_alone = [this](Bound& bound) {
    if (bound.stream != 0) fork();
    launch(bound);
    if (bound.stream != 0) join(), end_streams();
  };
  for (size_t i = 0; i < launches_.size(); ++i) seconds[i] += backend_.time([&] { launch_alone(launches_[i]); });
  copy_back();
}

void Program::copy_back() {
  for (const CopyBack& copy : plan_.copies) {
    if (is_kept(copy.target)) await_copies(0);
    changes_ += is_kept(copy.target);
    int64_t bytes = num_bytes(plan_.graph.type(copy.value));
    Work work{.kind = Work::Kind::kCopyBack, .plan = &plan_, .index = int(&copy - plan_.copies.data()), .bytes = bytes};
    observed(observer_, work, [&] { backend_.copy(arguments_.at(copy.target), address(copy.value), bytes); });
  }
}

ValueId Program::result(std::string_view name, int64_t bytes) const {
  ValueId value = plan_.graph.find_result(name);
  TOKAMAK_CHECK(value != kNoValue && bytes == num_bytes(plan_.graph.type(value)), "no result '{}' of {} bytes", name,
                bytes);
  return value;
}

bool Program::has_result(std::string_view name) const { return plan_.graph.find_result(name) != kNoValue; }

void Program::get_result(std::string_view name, void* to, int64_t bytes) const {
  backend_.copy_out(to, address(result(name, bytes)), bytes);
}

std::unique_ptr<Readback> Program::read_scalar(std::string_view name) const {
  return backend_.read_later(address(result(name, sizeof(float))), sizeof(float));
}

std::unique_ptr<Readback> Program::read_result(std::string_view name) const {
  ValueId value = plan_.graph.find_result(name);
  TOKAMAK_CHECK(value != kNoValue, "no result '{}'", name);
  return backend_.read_later(address(value), num_bytes(plan_.graph.type(value)));
}

float Program::get_scalar(std::string_view name) const {
  float value = 0;
  get_result(name, &value, sizeof value);
  return value;
}

}  // namespace tokamak
