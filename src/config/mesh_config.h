// How a step is divided over devices: docs/parallel.md.
#pragma once

#include <cstdint>

namespace tokamak {

struct MeshConfig {
  int64_t pipe = 1;      // stages that the layers are divided into
  int64_t data = 0;      // ranks that the batch is divided over; 0: what the others leave
  int64_t context = 1;   // ranks that each sequence is divided over
  int64_t tensor = 1;    // ranks that each matrix is divided over
  bool sequence = true;  // whether tensor ranks divide each sequence where they do not divide matrices
  int64_t zero = 0;      // what data ranks divide besides the batch: 1 optimizer states, 2 gradient sums, 3 parameters
  int64_t bucket_mib = 50;  // what collectives of gradients and parameters are joined up to, in MiB; 0: none are joined
};

}  // namespace tokamak
