#include "backend/cuda/cuda_backend.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

namespace tokamak::cuda {
namespace {

// Sets variables (no value: takes them away) until its end.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::optional<std::string>>& variables) {
    for (const auto& [name, value] : variables) {
      const char* old = std::getenv(name.c_str());
      before_[name] = old ? std::optional<std::string>(old) : std::nullopt;
      set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> before_;
};

std::string cache_with(std::optional<std::string> own, std::optional<std::string> xdg,
                       std::optional<std::string> home) {
  Environment environment({{"TOKAMAK_CACHE", own}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}});
  return default_cache().string();
}

TEST(DefaultCache, IsTheFirstThatIsSet) {
  EXPECT_EQ(cache_with("/own", "/xdg", "/home"), "/own");
  EXPECT_EQ(cache_with("", "/xdg", "/home"), "") << "empty: nothing is kept";
  EXPECT_EQ(cache_with({}, "/xdg", "/home"), "/xdg/tokamak");
  EXPECT_EQ(cache_with({}, {}, "/home"), "/home/.cache/tokamak");
  EXPECT_EQ(cache_with({}, {}, {}), "");
}

TEST(DefaultCache, IsNeverInTheWorkingFolder) {
  EXPECT_EQ(cache_with({}, "", "/home"), "/home/.cache/tokamak");
  EXPECT_EQ(cache_with({}, "relative", "/home"), "/home/.cache/tokamak");
  EXPECT_EQ(cache_with({}, "", ""), "");
  EXPECT_EQ(cache_with({}, {}, "relative"), "");
}

TEST(HideOtherDevices, KeepsTheFirstThatIsVisible) {
  auto visible_after = [](std::optional<std::string> before) {
    Environment environment({{"CUDA_VISIBLE_DEVICES", before}});
    hide_other_devices();
    return std::string(std::getenv("CUDA_VISIBLE_DEVICES"));
  };
  EXPECT_EQ(visible_after(std::nullopt), "0");
  EXPECT_EQ(visible_after("3,1"), "3");
  EXPECT_EQ(visible_after("GPU-8f1c"), "GPU-8f1c");
  EXPECT_EQ(visible_after(""), "") << "none stays none";
}

}  // namespace
}  // namespace tokamak::cuda
