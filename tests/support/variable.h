// A variable of the environment for the programs that a test starts.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

namespace tokamak {

/// Is set while it lives.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_.c_str()); }

 private:
  std::string name_;
};

}  // namespace tokamak
