// flat, row and column: generated device code (codegen/group_source.h), compiled and launched.
#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/kernels.h"
#include "ops/group_form.h"

namespace tokamak::cuda {
namespace {

class GroupKernel : public Kernel {
 public:
  GroupKernel(Context& context, const GroupCode& code)
      : context_(context), launches_(code.launches), workspace_bytes_(code.workspace_bytes) {
    for (const GroupLaunch& launch : launches_)
      functions_.push_back(context.compiler->add(launch.function, code.source));
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  void use_workspace(void* at) override { workspace_ = at; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> operands(in.begin(), in.end());
    operands.insert(operands.end(), out.begin(), out.end());
    operands.push_back(workspace_);
    std::vector<void*> arguments;
    for (const void*& operand : operands) arguments.push_back(static_cast<void*>(&operand));
    for (size_t i = 0; i < launches_.size(); ++i) {
      const GroupLaunch& l = launches_[i];
      LaunchShape shape{dim3(unsigned(l.blocks_x), unsigned(l.blocks_y)),
                        dim3(unsigned(l.threads_x), unsigned(l.threads_y)), l.shared_bytes};
      functions_[i]->launch_with(context_.queue(), shape, arguments.data());
    }
  }

 private:
  Context& context_;
  std::vector<GroupLaunch> launches_;
  std::vector<std::shared_ptr<DeviceFunction>> functions_;
  int64_t workspace_bytes_;
  void* workspace_ = nullptr;
};

}  // namespace

KernelPtr make_group_kernel(Context& context, const Graph&, const Node& node) {
  return std::make_unique<GroupKernel>(context, generate_group(node, context.info.shared_bytes));
}

int64_t group_scratch(const DeviceInfo& info, const Graph&, const Node& node) {
  return group_workspace_bytes(node, info.shared_bytes);
}

std::string generated_source(const Node& node) { return is_matrix_group(node) ? generate_group(node).source : ""; }

}  // namespace tokamak::cuda
