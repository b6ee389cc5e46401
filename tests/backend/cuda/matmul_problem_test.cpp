#include "backend/cuda/matmul_problem.h"
#include "backend/cuda/hopper_matmul.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/thin_matmul.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include "backend/cuda/matmul_call.h"
#include "base/error.h"
#include "graph/builder.h"
#include "tests/backend/cuda/matmul_forms.h"
#include "tests/backend/cuda/matmul_step.h"

#include <gtest/gtest.h>

#include <functional>

namespace tokamak::cuda {
namespace {

using test::MatmulCase;
using test::MatmulForm;

MatmulNode read(const Graph& graph) { return matmul_node(graph, graph.nodes().back()); }

MatmulNode read(const MatmulCase& c) { return read(test::matmul_graph(c)); }

std::string key_of(MatmulForm form) {
  return read(MatmulCase{form, DType::kBF16, 1, 16, 24, 32, false, true}).problem.key();
}

TEST(matmul_problem, every_form_has_a_key_of_its_own) {
  EXPECT_EQ(key_of(MatmulForm::kPlain), "bf16 16x24x32 nt");
  EXPECT_EQ(key_of(MatmulForm::kBias), "bf16 16x24x32 nt +bias");
  EXPECT_EQ(key_of(MatmulForm::kBiasGelu), "bf16 16x24x32 nt +bias+gelu");
  EXPECT_EQ(key_of(MatmulForm::kBiasGeluAux), "bf16 16x24x32 nt +bias+gelu+aux");
  EXPECT_EQ(key_of(MatmulForm::kGeluGrad), "bf16 16x24x32 nt +gelu_grad");
  EXPECT_EQ(key_of(MatmulForm::kGeluGradSums), "bf16 16x24x32 nt +gelu_grad+sums");
  EXPECT_EQ(key_of(MatmulForm::kCast), "bf16>f32 16x24x32 nt");
  EXPECT_EQ(key_of(MatmulForm::kAccumulate), "bf16 16x24x32 nt +c");
  EXPECT_EQ(key_of(MatmulForm::kAccumulateCast), "bf16>f32 16x24x32 nt +c");
}

TEST(matmul_problem, keys_tell_batch_transposes_and_tf32) {
  EXPECT_EQ(read(MatmulCase{MatmulForm::kPlain, DType::kF32, 6, 3, 4, 5, true, false}).problem.key(), "f32 6*3x4x5 tn");
  EXPECT_EQ(read(MatmulCase{MatmulForm::kPlain, DType::kF32, 1, 3, 4, 5, false, false, true}).problem.key(),
            "tf32 3x4x5 nn");
  EXPECT_EQ(read(MatmulCase{MatmulForm::kBias, DType::kF32, 1, 3, 4, 5, false, false, true}).problem.key(),
            "tf32 3x4x5 nn +bias");
  EXPECT_EQ(read(MatmulCase{MatmulForm::kPlain, DType::kBF16, 1, 3, 4, 5, false, false, true}).problem.key(),
            "bf16 3x4x5 nn");
}

// A matmul with these attributes of operands of these types.
Graph product(DType a, DType b, Attrs attrs, bool scaled = false) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueIds in{g.input("a", {a, {16, 32}}), g.input("b", {b, {32, 24}})};
  for (int i = 0; scaled && i < 2; ++i) in.push_back(g.input(i ? "sb" : "sa", {DType::kF32, {}}));
  attrs.set("trans_a", false), attrs.set("trans_b", false);
  g.add1(op::matmul, in, attrs);
  return graph;
}

TEST(matmul_problem, keys_tell_the_formats_of_each_operand) {
  auto key = [](DType a, DType b, const Attrs& attrs, bool scaled = false) {
    return read(product(a, b, attrs, scaled)).problem.key();
  };
  EXPECT_EQ(key(DType::kBF16, DType::kBF16, {}), "bf16 16x24x32 nn");
  EXPECT_EQ(key(DType::kBF16, DType::kBF16, {{"result", "f32"}}), "bf16>f32 16x24x32 nn");
  EXPECT_EQ(key(DType::kBF16, DType::kF32, {{"result", "bf16"}}), "bf16*f32>bf16 16x24x32 nn");
  EXPECT_EQ(key(DType::kF32, DType::kBF16, {{"result", "f32"}, {"tf32", true}}), "tf32*bf16>f32 16x24x32 nn");
  EXPECT_EQ(key(DType::kF16, DType::kF16, {{"accumulator", "f16"}}), "f16/f16 16x24x32 nn");
  EXPECT_EQ(key(DType::kBF16, DType::kBF16, {}, true), "bf16 scaled 16x24x32 nn");
}

// Without a kernel a node runs by its op's reference; no group is made around it, and no library is asked.
TEST(matmul_problem, formats_that_no_kernel_knows_are_refused) {
  DeviceInfo info;
  info.major = 9;
  auto has = [&](DType a, DType b, const Attrs& attrs, bool scaled = false) {
    Graph graph = product(a, b, attrs, scaled);
    const Node& node = graph.nodes()[0];
    EXPECT_EQ(takes_matmul(info, graph, node), has_kernel(info, graph, node));
    return has_kernel(info, graph, node);
  };
  EXPECT_TRUE(has(DType::kBF16, DType::kBF16, {}));
  EXPECT_TRUE(has(DType::kBF16, DType::kBF16, {{"result", "f32"}}));
  EXPECT_TRUE(has(DType::kF32, DType::kF32, {{"tf32", true}}));
  EXPECT_FALSE(has(DType::kF32, DType::kF32, {{"result", "bf16"}}));
  EXPECT_FALSE(has(DType::kBF16, DType::kF32, {{"result", "f32"}}));
  EXPECT_FALSE(has(DType::kBF16, DType::kF16, {{"result", "f32"}}));
  EXPECT_FALSE(has(DType::kF16, DType::kF16, {{"accumulator", "f16"}}));
  EXPECT_FALSE(has(DType::kBF16, DType::kBF16, {}, true));
  EXPECT_THROW(MatmulCall{read(product(DType::kBF16, DType::kF32, {{"result", "f32"}})).problem}, InternalError);
}

// The own kernels read both operands by one type.
TEST(matmul_problem, own_kernels_refuse_two_types) {
  MatmulNode thin = read(MatmulCase{MatmulForm::kPlain, DType::kBF16, 1, 4, 64, 64});
  EXPECT_TRUE(thin_supports(thin));
  thin.problem.b = NumberFormat::kF32;
  EXPECT_FALSE(thin_supports(thin));
  MatmulNode wide = read(MatmulCase{MatmulForm::kGeluGrad, DType::kBF16, 1, 256, 192, 64});
  EXPECT_TRUE(hopper_supports(wide, {9, 0}));
  wide.problem.b = NumberFormat::kF16;
  EXPECT_FALSE(hopper_supports(wide, {9, 0}));
}

TEST(matmul_problem, finds_the_operands) {
  MatmulNode bias = read(MatmulCase{MatmulForm::kBiasGeluAux, DType::kBF16, 1, 8, 8, 8});
  EXPECT_EQ(bias.form.bias, 2);
  EXPECT_EQ(bias.form.argument, 0);
  EXPECT_EQ(bias.form.y, 1);
  MatmulNode grad = read(MatmulCase{MatmulForm::kGeluGrad, DType::kBF16, 1, 8, 8, 8});
  EXPECT_EQ(grad.form.operand, 2);
  EXPECT_EQ(grad.form.y, 0);
  EXPECT_EQ(grad.form.sums, -1);
  MatmulNode sums = read(MatmulCase{MatmulForm::kGeluGradSums, DType::kBF16, 1, 8, 8, 8});
  EXPECT_EQ(sums.form.operand, 2);
  EXPECT_EQ(sums.form.y, 0);
  EXPECT_EQ(sums.form.sums, 1);
  MatmulNode sum = read(MatmulCase{MatmulForm::kAccumulateCast, DType::kBF16, 1, 8, 8, 8});
  EXPECT_EQ(sum.form.addend, 2);
  EXPECT_EQ(sum.form.bias, -1);
}

TEST(matmul_problem, knows_the_bytes_beside_the_product) {
  auto problem = [](MatmulForm form) { return read(MatmulCase{form, DType::kBF16, 3, 16, 24, 32}).problem; };
  for (MatmulForm form : {MatmulForm::kGeluGrad, MatmulForm::kGeluGradSums}) {
    EXPECT_EQ(problem(form).aux_bytes(), 3 * 16 * 24 * 2);
    EXPECT_EQ(problem(form).bias_bytes(), 0);
    EXPECT_EQ(problem(form).output_bytes(), 3 * 16 * 24 * 2);
  }
  EXPECT_EQ(problem(MatmulForm::kBiasGeluAux).aux_bytes(), 3 * 16 * 24 * 2);
  EXPECT_EQ(problem(MatmulForm::kBiasGeluAux).bias_bytes(), 24 * 2);
  EXPECT_EQ(problem(MatmulForm::kBias).aux_bytes(), 0);
  EXPECT_EQ(problem(MatmulForm::kPlain).bias_bytes(), 0);
}

// The sum may lie where the vector does, which a bias may not.
TEST(matmul_problem, a_vector_added_to_one_row_is_an_addend) {
  MatmulNode row = read(MatmulCase{MatmulForm::kBias, DType::kF32, 1, 1, 8, 8});
  EXPECT_EQ(row.problem.key(), "f32 1x8x8 nn +c");
  EXPECT_EQ(row.form.addend, 2);
  EXPECT_EQ(row.form.bias, -1);
  EXPECT_EQ(read(MatmulCase{MatmulForm::kBiasGelu, DType::kF32, 1, 1, 8, 8}).form.bias, 2);
}

using Epilogue = std::function<ValueId(GraphBuilder&, ValueId, ValueId)>;
using Results = ValueIds;

// A fused_matmul with inputs a [4,8], b [8,6] and c, of c's type, and the results of the epilogue.
Graph group_with(const ValueType& c, const std::function<Results(GraphBuilder&, ValueId, ValueId)>& epilogue) {
  auto body = std::make_shared<Graph>("body");
  GraphBuilder inner(*body);
  ValueTypes types{{c.dtype, {4, 8}}, {c.dtype, {8, 6}}, c};
  ValueIds in, outer;
  for (size_t i = 0; i < 3; ++i) in.push_back(inner.input("a" + std::to_string(i), types[i]));
  for (ValueId result : epilogue(inner, matmul(inner, in[0], in[1], false, false), in[2]))
    body->add_result("r" + std::to_string(body->results().size()), result);
  Graph graph("graph");
  GraphBuilder g(graph);
  for (size_t i = 0; i < 3; ++i) outer.push_back(g.input("x" + std::to_string(i), types[i]));
  graph.add_result("y", g.add(op::fused_matmul, outer, {}, body)[0]);
  return graph;
}

Graph group_of(const ValueType& c, const Epilogue& epilogue) {
  return group_with(c, [&](GraphBuilder& g, ValueId mm, ValueId c) { return Results{epilogue(g, mm, c)}; });
}

// Results: gelu_grad(c, mm) and what becomes of it.
Graph gradient_with(DType dtype, const std::function<ValueId(GraphBuilder&, ValueId)>& sums) {
  return group_with({dtype, {4, 6}}, [&](GraphBuilder& g, ValueId mm, ValueId c) {
    ValueId gradient = g.add1(op::gelu_grad, {c, mm});
    return Results{gradient, sums(g, gradient)};
  });
}

TEST(matmul_problem, sees_through_reshapes) {
  Graph full = group_of({DType::kF32, {2, 2, 6}}, [](GraphBuilder& g, ValueId mm, ValueId c) {
    return reshape(g, add(g, reshape(g, mm, {2, 2, 6}), c), {24});
  });
  EXPECT_EQ(read(full).problem.key(), "f32 4x6x8 nn +c");
  Graph vector = group_of({DType::kF32, {1, 6}}, [](GraphBuilder& g, ValueId mm, ValueId c) {
    return add(g, reshape(g, mm, {2, 2, 6}), reshape(g, c, {6}));
  });
  EXPECT_EQ(read(vector).problem.key(), "f32 4x6x8 nn +bias");
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Graph sums = gradient_with(dtype, [](GraphBuilder& g, ValueId x) {
      return reshape(g, reduce_sum(g, cast(g, reshape(g, x, {2, 2, 6}), DType::kF32), {0, 1}, false), {1, 6});
    });
    EXPECT_EQ(read(sums).problem.key(), fmt::format("{} 4x6x8 nn +gelu_grad+sums", dtype_name(dtype)));
  }
}

void expect_refused(const Graph& graph, const std::string& op) {
  try {
    read(graph);
    FAIL() << op;
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("'" + op + "'"), std::string::npos) << error.what();
  }
}

TEST(matmul_problem, refuses_what_is_no_form_and_names_the_op) {
  ValueType vector{DType::kF32, {6}}, full{DType::kF32, {4, 6}};
  expect_refused(group_of(vector, [](GraphBuilder& g, ValueId mm, ValueId c) { return mul(g, mm, c); }), "mul");
  // A vector along the rows, one for all columns.
  expect_refused(group_of({DType::kF32, {4, 1}}, [](GraphBuilder& g, ValueId mm, ValueId c) { return add(g, mm, c); }),
                 "add");
  expect_refused(group_of({DType::kF32, {1}}, [](GraphBuilder& g, ValueId mm, ValueId c) { return add(g, mm, c); }),
                 "add");
  // As many elements, but each is added to each.
  expect_refused(group_of({DType::kF32, {24}},
                          [](GraphBuilder& g, ValueId mm, ValueId c) {
                            return add(g, reshape(g, mm, {24, 1}), c);
                          }),
                 "add");
}

// A gradient the other way round, GELU of a sum with a matrix, a matrix added twice.
TEST(matmul_problem, knows_functions_that_the_library_lacks) {
  ValueType full{DType::kF32, {4, 6}};
  for (const Epilogue& function : {Epilogue([](auto&g, ValueId mm, ValueId c) {
                                     return g.add1(op::gelu_grad, {mm, c});
                                   }),
                                   Epilogue([](auto&g, ValueId mm, ValueId c) { return gelu(g, add(g, mm, c)); }),
                                   Epilogue([](auto&g, ValueId mm, ValueId c) { return add(g, add(g, mm, c), c); })}) {
    MatmulNode node = read(group_of(full, function));
    EXPECT_EQ(node.problem.key(), "f32 4x6x8 nn +function");
    EXPECT_THROW(MatmulCall{node.problem}, InternalError);
  }
}

TEST(matmul_problem, refuses_other_sums_of_a_gradient) {
  auto sum = [](std::vector<int64_t> dims) {
    return [dims](GraphBuilder& g, ValueId x) { return reduce_sum(g, x, dims, true); };
  };
  EXPECT_NO_THROW(read(gradient_with(DType::kF32, sum({0}))));
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1}, {0, 1}})
    expect_refused(gradient_with(DType::kF32, sum(dims)), "reduce_sum");
  // Columns of another length, and sums of sums.
  expect_refused(gradient_with(DType::kF32,
                               [&](GraphBuilder& g, ValueId x) {
                                 return sum({0})(g, reshape(g, x, {2, 12}));
                               }),
                 "reduce_sum");
  expect_refused(gradient_with(DType::kF32, [&](GraphBuilder& g, ValueId x) { return sum({0})(g, sum({0})(g, x)); }),
                 "reduce_sum");
  expect_refused(group_of({DType::kF32, {6}}, [&](GraphBuilder& g, ValueId mm, ValueId) { return sum({0})(g, mm); }),
                 "reduce_sum");
  // The sums alone, and a gradient that is widened for nothing.
  Graph alone = group_of({DType::kF32, {4, 6}}, [&](GraphBuilder& g, ValueId mm, ValueId c) {
    return sum({0})(g, g.add1(op::gelu_grad, {c, mm}));
  });
  EXPECT_THROW(read(alone), InternalError);
  EXPECT_THROW(read(gradient_with(DType::kBF16, [](GraphBuilder& g, ValueId x) { return cast(g, x, DType::kF32); })),
               InternalError);
}

TEST(matmul_problem, reads_every_matmul_of_a_training_step) {
  for (Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
    auto matmuls = test::matmuls_of_step(precision).matmuls;
    EXPECT_GE(matmuls.size(), 14u) << precision_name(precision);
    EXPECT_LE(matmuls.size(), 24u) << precision_name(precision);
    for (const auto& [key, node] : matmuls) {
      if (hopper_supports(node, {9, 0})) continue;  // by an own kernel
      EXPECT_NO_THROW(MatmulCall{node.problem}) << key;
    }
  }
  EXPECT_TRUE(test::matmuls_of_step(Precision::kBf16).matmuls.count("bf16 65536x50304x768 nt")) << "the head";
}

// Descriptors need no GPU: this finds attributes that the library refuses.
TEST(matmul_problem, the_library_takes_the_description_of_every_form) {
  for (MatmulForm form : test::kMatmulForms)
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
      for (int64_t batch : {1, 3}) {
        MatmulCase c{form, dtype, batch, 16, 24, 32, true, false};
        if (!test::exists(c) || (batch > 1 && form == MatmulForm::kBias)) continue;
        EXPECT_NO_THROW(MatmulCall{read(c).problem}) << read(c).problem.key();
      }
}

TEST(matmul_problem, the_library_has_no_sums) {
  EXPECT_THROW(MatmulCall{read(MatmulCase{MatmulForm::kGeluGradSums, DType::kBF16, 1, 16, 24, 32}).problem},
               InternalError);
}

}  // namespace
}  // namespace tokamak::cuda
