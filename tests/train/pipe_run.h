// Runs compiled steps by the reference interpreter: all stages of a pipeline, each on all ranks of its mesh, by their
// schedules, with slots and transfers; ranks wait in every transfer for the other one. A step on one rank is a pipeline
// of one stage.
#pragma once

#include "base/error.h"
#include "model/model.h"
#include "ops/collective.h"
#include "passes/extract.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "train/compiled_step.h"

#include <cmath>
#include <map>

namespace tokamak::test {

/// Whole tensors by name, of each micro-batch.
using Inputs = std::vector<std::map<std::string, HostTensor>>;

/// A stage's tensors on the ranks of its mesh.
class StageRun {
 public:
  StageRun(const CompiledStep& step, Mesh mesh) : step_(step), mesh_(std::move(mesh)) {
    for (const CompiledGraph& program : step.programs)
      for (const Argument& a : program.plan.graph.arguments())
        if (a.kind != Argument::Kind::kInput) make(program.plan.graph, a);
  }

  const CompiledStep& step() const { return step_; }

  /// Writes the beginning of a parameter or state: padding stays zero.
  void write(const std::string& name, const std::vector<float>& values) {
    if (!kept_.count(name)) return;
    const Layout& layout = layouts_.at(name);
    HostTensor whole({DType::kF32, whole_shape(kept_.at(name)[0][0].shape(), layout.cuts)});
    std::copy(values.begin(), values.end(), whole.data.begin());
    for (int64_t rank = 0; rank < mesh_.num_ranks(); ++rank)
      kept_.at(name)[size_t(rank)][0] = share_of(whole, layout.cuts, mesh_, rank);
  }

  /// The same on every rank.
  void keep(const std::string& name, const HostTensor& tensor) {
    kept_[name].assign(size_t(mesh_.num_ranks()), {tensor});
  }

  /// All ranks' tensors of the slot of the micro-batch.
  std::vector<HostTensor*> tensors(const std::string& name, int64_t micro_batch) {
    std::vector<HostTensor*> found;
    for (std::vector<HostTensor>& slots : kept_.at(name))
      found.push_back(&slots[micro_batch < 0 ? 0 : size_t(micro_batch) % slots.size()]);
    return found;
  }
  const std::map<std::string, Layout>& layouts() const { return layouts_; }

  /// Runs a graph and keeps its updates; what it gives on the first rank.
  std::map<std::string, double> run(const Graph& graph, int64_t micro_batch,
                                    const std::map<std::string, HostTensor>& inputs) {
    std::vector<std::vector<HostTensor>> arguments(size_t(mesh_.num_ranks()));
    for (const Argument& a : graph.arguments())
      for (int64_t rank = 0; rank < mesh_.num_ranks(); ++rank)
        arguments[size_t(rank)].push_back(
            a.kind == Argument::Kind::kInput ? input(a, rank, inputs) : *tensors(a.name, micro_batch)[size_t(rank)]);
    std::vector<Interpretation> out = interpret_ranks(graph, mesh_, arguments);
    for (size_t rank = 0; rank < out.size(); ++rank)
      for (size_t u = 0; u < graph.updates().size(); ++u)
        *tensors(graph.argument_of(graph.updates()[u].target)->name, micro_batch)[rank] = out[rank].updates[u];
    std::map<std::string, double> results;
    for (size_t r = 0; r < graph.results().size(); ++r) results[graph.results()[r].name] = out[0].results[r][0];
    return results;
  }

 private:
  // What only lives between programs begins as what must not be read.
  void make(const Graph& graph, const Argument& a) {
    auto slots = step_.slots.find(a.name);
    HostTensor tensor(graph.type(a.value));
    if (slots != step_.slots.end()) std::fill(tensor.data.begin(), tensor.data.end(), NAN);
    std::vector<HostTensor> of_rank(slots == step_.slots.end() ? 1 : size_t(slots->second), tensor);
    kept_.try_emplace(a.name, size_t(mesh_.num_ranks()), of_rank);
    layouts_[a.name] = a.layout;
  }

  HostTensor input(const Argument& a, int64_t rank, const std::map<std::string, HostTensor>& inputs) const {
    for (const MeshAxis& axis : mesh_.axes)
      if (a.name == coordinate_input(axis.name))
        return {{DType::kI32, {}}, {double(mesh_.coordinates(rank)[mesh_.find(axis.name)])}};
    return share_of(inputs.at(a.name), a.layout.cuts, mesh_, rank);
  }

  const CompiledStep& step_;
  Mesh mesh_;
  std::map<std::string, std::vector<std::vector<HostTensor>>> kept_;  // by rank and slot
  std::map<std::string, Layout> layouts_;
};

/// All stages.
class PipeRun {
 public:
  PipeRun(const std::vector<const CompiledStep*>& stages, const RunConfig& config) {
    MeshConfig of_stage = config.mesh;
    of_stage.pipe = 1;
    for (const CompiledStep* stage : stages) stages_.emplace_back(*stage, step_mesh(of_stage));
    std::vector<ParameterInfo> parameters = model_parameters(config.model);
    for (size_t i = 0; i < parameters.size(); ++i)
      for (StageRun& stage : stages_) stage.write(parameters[i].name, init_parameter(parameters[i], int64_t(i), 7));
    for (StageRun& stage : stages_) stage.write("scaler.scale", {float(config.compile.loss_scale)});
  }

  std::vector<StageRun>& stages() { return stages_; }

  /// One optimizer step -> its losses, and grad_norm of each stage.
  std::vector<double> run_step(const Inputs& inputs, double lr) {
    std::vector<double> told;
    std::vector<size_t> next(stages_.size(), 0);
    auto at = [&](size_t stage) { return stages_[stage].step().schedule[next[stage]]; };
    auto is_at_update = [&](size_t stage) { return next[stage] + 1 == stages_[stage].step().schedule.size(); };
    for (bool any = true; any;) {
      any = false;
      for (size_t s = 0; s < stages_.size(); ++s) {
        if (is_at_update(s)) continue;
        ScheduledRun run = at(s);
        if (!run.transfer) {
          const Graph& graph = stages_[s].step().programs[run.program].plan.graph;
          auto results = stages_[s].run(graph, run.micro_batch, inputs[size_t(run.micro_batch)]);
          if (results.count("loss")) told.push_back(results["loss"]);
        } else {
          auto peer = size_t(run.transfer->stage);
          if (!run.transfer->sends || is_at_update(peer)) continue;
          ScheduledRun other = at(peer);
          bool meets = other.transfer && !other.transfer->sends && other.transfer->stage == int64_t(s);
          if (!meets) continue;
          EXPECT_EQ(other.micro_batch, run.micro_batch);
          auto from = stages_[s].tensors(run.transfer->state, run.micro_batch);
          auto to = stages_[peer].tensors(other.transfer->state, other.micro_batch);
          for (size_t rank = 0; rank < from.size(); ++rank) {
            TOKAMAK_CHECK(from[rank]->type == to[rank]->type, "two types of {}", run.transfer->state);
            *to[rank] = *from[rank];
          }
          ++next[peer];
        }
        ++next[s];
        any = true;
      }
    }
    for (size_t s = 0; s < stages_.size(); ++s) TOKAMAK_CHECK(is_at_update(s), "stage {} waits for ever", s);
    update(inputs[0], lr, told);
    return told;
  }

 private:
  // The last programs, in which squares are added over all stages; without accumulation it is the only one.
  void update(std::map<std::string, HostTensor> inputs, double lr, std::vector<double>& told) {
    inputs["lr"] = HostTensor({DType::kF32, {}}, {lr});
    double squares = 0;
    for (StageRun& stage : stages_)
      if (const Node* sum = sum_over_stages(stage))
        squares +=
            stage.run(extract(graph_of(stage), {"squares", {{"squares", sum->inputs[0]}}, {}}), -1, inputs)["squares"];
    for (StageRun& stage : stages_) {
      Graph graph = graph_of(stage);
      if (const Node* sum = sum_over_stages(stage)) {
        Part part{"rest", graph.results(), graph.updates()};
        part.given[sum->outputs[0]] = {"squares", {DType::kF32, {}}, {Role::kState, "", {}}};
        graph = extract(graph, part);
        stage.keep("squares", HostTensor({DType::kF32, {}}, {squares}));
      }
      auto results = stage.run(graph, -1, inputs);
      if (results.count("loss")) told.push_back(results["loss"]);
      told.push_back(results["grad_norm"]);
    }
  }

  static const Graph& graph_of(const StageRun& stage) { return stage.step().programs.back().plan.graph; }
  static const Node* sum_over_stages(const StageRun& stage) {
    for (const Node& node : graph_of(stage).nodes())
      if (node.op == &op::all_reduce && node.attrs.get_string("axis") == kPipeAxis) return &node;
    return nullptr;
  }

  std::vector<StageRun> stages_;
};

}  // namespace tokamak::test
