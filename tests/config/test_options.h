// An option struct as a command has it: arguments, options of its own, and a run configuration.
#pragma once

#include "config/config.h"
#include "config/visit.h"

namespace tokamak {

struct TestOptions {
  std::string config;
  std::vector<std::string> inputs;
  std::string show = "all";
  int64_t top_k = 0;
  double temperature = 1.0;
  bool quiet = false;
  RunConfig run;
};

inline void visit(FieldList& v, TestOptions& c) {
  v.config_file("config", c.config, "run file (TOML)");
  v.positional("inputs", c.inputs, "files", false);
  v("show", c.show, "what to show", one_of({"all", "kernels"}));
  v("top_k", c.top_k, "candidates", at_least(0));
  v("temperature", c.temperature, "randomness", at_least(0));
  v("quiet", c.quiet, "say less");
  v.config(c.run);
}

}  // namespace tokamak
