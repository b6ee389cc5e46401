// Supervision of a run on several machines. Tests: tests/e2e/agent_test.cpp; in network namespaces
// tests/chaos/hosts.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/field.h"

namespace tokamak {

struct AgentOptions {
  int64_t machines = 1;
  int64_t number = 0;
  std::string address;  // "host:port" of the first machine
  int64_t ranks = 0;    // of each machine its own; 0: one a GPU, on the CPU one
  int64_t wait_seconds = 60;
};

void visit(FieldList& v, AgentOptions& c);
void validate(const AgentOptions& options);

/// This machine's agent: starts its ranks when all machines have come, and again when a rank or a machine is lost, on
/// those machines that are left. `run`: what is trained. `restarts`: in an hour. `variables`: of the environment of its
/// ranks, each "NAME=value". The exit status; UserError on the first machine where the run cannot begin (again), and on
/// one that is left out.
int run_agent(const RunConfig& run, const AgentOptions& options, int64_t restarts,
              const std::vector<std::string>& variables = {});

}  // namespace tokamak
