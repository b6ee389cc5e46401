// Builds indented source text.
#pragma once

#include <fmt/core.h>

#include <string>

namespace tokamak::cuda {

class Text {
 public:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  void unroll() { line("#pragma unroll"); }
  template <typename... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...) + " {");
    ++depth_;
  }
  void close(const char* with = "}") {
    --depth_;
    add(with);
  }
  void blank() { text_ += "\n"; }
  const std::string& str() const { return text_; }

 private:
  void add(const std::string& line) { text_ += std::string(size_t(2 * depth_), ' ') + line + "\n"; }
  std::string text_;
  int depth_ = 0;
};

}  // namespace tokamak::cuda
