#include "backend/ranks/gloo.h"
#include "base/error.h"

namespace tokamak {

bool gloo_is_built() { return false; }

std::unique_ptr<Communicator> make_gloo_world(StoreClient&, const GlooOptions&) {
  user_error(
      "[mesh] expected a program with Gloo for ranks that are processes on CPUs, got one without; install libgloo-dev "
      "and "
      "build again");
}

}  // namespace tokamak
