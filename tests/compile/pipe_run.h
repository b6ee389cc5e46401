// Runs compiled steps by the reference interpreter: all stages of a pipeline, each on all ranks of its mesh, by their
// schedules, with slots and transfers; ranks wait in every transfer for the other one. A step on one rank is a pipeline
// of one stage.
#pragma once

#include "base/error.h"
#include "compile/compiled_step.h"
#include "model/model.h"
#include "ops/collective.h"
#include "passes/extract.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"

#include <cmath>
#include <map>
#include <numeric>

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
    const ArgumentSpec& spec = specs_.at(name);
    HostTensor whole({DType::kF32, whole_shape(kept_.at(name)[0][0].shape(), spec.cuts)});
    std::copy(values.begin(), values.end(), whole.data.begin());
    for (int64_t rank = 0; rank < mesh_.num_ranks(); ++rank)
      kept_.at(name)[size_t(rank)][0] = share_of(whole, spec.cuts, mesh_, rank);
  }

  /// The same on every rank.
  void keep(const std::string& name, const HostTensor& tensor) {
    kept_[name].assign(size_t(mesh_.num_ranks()), {tensor});
  }

  /// All ranks' tensors of the buffer of the micro-batch.
  std::vector<HostTensor*> tensors(const std::string& name, int64_t micro_batch) {
    auto odd = micro_batch % 2 == 1 ? step_.odd_states.find(name) : step_.odd_states.end();
    std::vector<HostTensor*> found;
    for (std::vector<HostTensor>& buffers : kept_.at(odd == step_.odd_states.end() ? name : odd->second))
      found.push_back(&buffers[micro_batch < 0 ? 0 : size_t(micro_batch) % buffers.size()]);
    return found;
  }
  const std::map<std::string, ArgumentSpec>& specs() const { return specs_; }

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
    auto buffers = step_.buffers.find(a.name);
    HostTensor tensor(graph.type(a.value));
    if (buffers != step_.buffers.end()) std::fill(tensor.data.begin(), tensor.data.end(), NAN);
    std::vector<HostTensor> of_rank(buffers == step_.buffers.end() ? 1 : size_t(buffers->second), tensor);
    kept_.try_emplace(a.name, size_t(mesh_.num_ranks()), of_rank);
    specs_[a.name] = a.spec;
  }

  HostTensor input(const Argument& a, int64_t rank, const std::map<std::string, HostTensor>& inputs) const {
    for (const MeshAxis& axis : mesh_.axes)
      if (a.name == coordinate_input(axis.name))
        return {{DType::kI32, {}}, {double(mesh_.coordinates(rank)[mesh_.find(axis.name)])}};
    return share_of(inputs.at(a.name), a.spec.cuts, mesh_, rank);
  }

  const CompiledStep& step_;
  Mesh mesh_;
  std::map<std::string, std::vector<std::vector<HostTensor>>> kept_;  // by rank and buffer
  std::map<std::string, ArgumentSpec> specs_;
};

struct StepOutcome {
  double loss = 0, grad_norm = 0;
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

  /// One optimizer step -> its mean loss and grad_norm, of each stage.
  std::vector<StepOutcome> run_step(const Inputs& inputs, double lr) {
    std::vector<double> losses;  // of micro-batches that tell theirs
    std::vector<size_t> next(stages_.size(), 0);
    auto at = [&](size_t stage) { return stages_[stage].step().runs[next[stage]]; };
    auto is_at_update = [&](size_t stage) { return next[stage] + 1 == stages_[stage].step().runs.size(); };
    for (bool any = true; any;) {
      any = false;
      for (size_t s = 0; s < stages_.size(); ++s) {
        if (is_at_update(s)) continue;
        ProgramRun run = at(s);
        if (!run.transfer) {
          const Graph& graph = stages_[s].step().programs[run.program].plan.graph;
          auto results = stages_[s].run(graph, run.micro_batch, inputs[size_t(std::max<int64_t>(run.micro_batch, 0))]);
          if (results.count("loss")) losses.push_back(results["loss"]);
        } else {
          auto peer = size_t(run.transfer->stage);
          if (!run.transfer->sends || is_at_update(peer)) continue;
          ProgramRun other = at(peer);
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
    return update(inputs[0], lr, losses);
  }

 private:
  // The last programs, in which values are added over all stages; without accumulation it is the only one.
  std::vector<StepOutcome> update(std::map<std::string, HostTensor> inputs, double lr, std::vector<double> losses) {
    inputs["lr"] = HostTensor({DType::kF32, {}}, {lr});
    std::vector<double> sums;
    for (StageRun& stage : stages_) {
      Part part{"terms"};
      for (const auto& [from, to] : sums_over_stages(stage)) part.results.push_back({std::to_string(from), from});
      if (part.results.empty()) continue;
      auto terms = stage.run(extract(graph_of(stage), part), -1, inputs);
      sums.resize(part.results.size());
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += terms.at(part.results[i].name);
    }
    std::vector<StepOutcome> told;
    for (StageRun& stage : stages_) {
      Graph graph = graph_of(stage);
      Part part{"rest", graph.results(), graph.updates()};
      for (const auto& [from, to] : sums_over_stages(stage)) {
        std::string name = fmt::format("sum{}", part.given.size());
        stage.keep(name, HostTensor({DType::kF32, {}}, {sums[part.given.size()]}));
        part.given[to] = {name, {DType::kF32, {}}, {Role::kState, "", {}}};
      }
      auto results = stage.run(extract(graph, part), -1, inputs);
      if (results.count("loss")) losses = {results["loss"]};
      double loss = std::accumulate(losses.begin(), losses.end(), 0.0) / double(losses.size());
      told.push_back({loss, results["grad_norm"]});
    }
    return told;
  }

  static const Graph& graph_of(const StageRun& stage) { return stage.step().programs.back().plan.graph; }
  // What each stage has of them, and the sums.
  static std::vector<std::pair<ValueId, ValueId>> sums_over_stages(const StageRun& stage) {
    std::vector<std::pair<ValueId, ValueId>> sums;
    for (const Node& node : graph_of(stage).nodes())
      if (node.op == &op::all_reduce && node.attrs.get_string("axis") == kPipeAxis)
        for (size_t i = 0; i < node.inputs.size(); ++i) sums.emplace_back(node.inputs[i], node.outputs[i]);
    return sums;
  }

  std::vector<StageRun> stages_;
};

}  // namespace tokamak::test
