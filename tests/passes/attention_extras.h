// For the passes that ask for more of attention's kernels (KernelSet::attention_extras).
#pragma once

#include "ops/attention.h"
#include "passes/pass.h"
#include "tests/support/fake_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak::test {

/// Of a target whose kernels of attention, and of its gradient, have forms with extras, or have none.
inline PassContext with_attention_extras(bool has = true) {
  PassContext context;
  context.kernels = fake_kernels({.attention_extras = [has](const Graph&, const Node& node) {
    return has && (node.op == &op::attention || node.op == &op::attention_grad);
  }});
  return context;
}

/// The pass is on with the context's options, and off without fusion.
inline void expect_off_without_fusion(std::string_view name, PassContext context) {
  auto pass = std::ranges::find(pipeline(), name, &Pass::name);
  ASSERT_NE(pass, pipeline().end()) << name;
  EXPECT_TRUE(pass->enabled(context));
  context.options.disable_passes = {"fuse"};
  EXPECT_FALSE(pass->enabled(context));
}

}  // namespace tokamak::test
