#include "backend/cuda/libraries/late_library.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::cuda {
namespace {

std::string error_of(const LateLibrary& library, const char* name) {
  try {
    library.find<static_cast<double (*)(double)>(&std::tgamma)>(name);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(LateLibrary, FindsFunctions) {
  LateLibrary library("libm.so.6", "install it");
  ASSERT_TRUE(library.is_open());
  auto* cosine = library.find<static_cast<double (*)(double)>(&::cos)>("cos");
  EXPECT_EQ(cosine(0), 1);
  EXPECT_NE(library.path().find("/libm.so.6"), std::string::npos) << library.path();
}

TEST(LateLibrary, SaysWhatIsMissingAndWhatToDo) {
  LateLibrary library("libnone.so.1", "install it");
  EXPECT_FALSE(library.is_open());
  std::string error = error_of(library, "cos");
  for (const char* part : {"[cuda] expected the library libnone.so.1, got: ", "No such file", "; install it"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_THROW(library.path(), UserError);
}

TEST(LateLibrary, SaysWhichFunctionIsMissing) {
  std::string error = error_of(LateLibrary("libm.so.6", "update it"), "none");
  EXPECT_NE(error.find("[cuda] expected none in "), std::string::npos) << error;
  EXPECT_NE(error.find("; update it"), std::string::npos) << error;
}

TEST(LateLibrary, NamesTheToolkitsByItsVersion) {
  EXPECT_TRUE(open_toolkit_library("nvrtc").is_open());
  std::string error = error_of(open_toolkit_library("none"), "cos");
  for (const char* part : {"libnone.so.1", "CUDA toolkit 1", "LD_LIBRARY_PATH", "--device=cpu"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

}  // namespace
}  // namespace tokamak::cuda
