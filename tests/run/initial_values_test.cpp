#include "run/initial_values.h"

#include "config/model_config.h"
#include "model/gpt.h"

#include <gtest/gtest.h>

#include <new>
#include <numeric>

namespace tokamak {
namespace {

TEST(InitialValues, AreThoseOfEachParameterInOrder) {
  std::vector<ParameterInfo> parameters =
      gpt_parameters({.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 99});
  InitialValues values(parameters, 5);
  for (size_t i = 0; i < parameters.size(); ++i) {
    InitialValues::Values drawn = values.take();
    std::vector<float> expected = init_parameter(parameters[i], int64_t(i), 5);
    ASSERT_EQ(std::vector<float>(drawn.data.get(), drawn.data.get() + drawn.count), expected) << parameters[i].name;
  }
}

TEST(InitialValues, StopWhenNobodyWantsThem) {
  std::vector<ParameterInfo> parameters(1000, ParameterInfo{"w", {1 << 20}});  // 4 GiB, more than is drawn ahead
  InitialValues values(parameters, 5);
  EXPECT_EQ(values.take().count, 1 << 20);
}

TEST(InitialValues, PassAFailureOn) {
  // More than an array can have: also AddressSanitizer lets that be an exception.
  InitialValues values({{"w", {int64_t(1) << 62}}}, 5);
  EXPECT_THROW(values.take(), std::bad_alloc);
}

}  // namespace
}  // namespace tokamak
