// In place of the server where CMake has not found cpp-httplib.
#include "pages/page_server.h"

#include "base/error.h"

namespace tokamak {

struct PageServer::State {};

PageServer::PageServer(const PageAddress&, std::function<std::string()>) {
  user_error(
      "[report] expected a build with cpp-httplib, which serves pages, got one without; install the package "
      "libcpp-httplib-dev and build again, or write the page with --every");
}

PageServer::~PageServer() = default;

std::string PageServer::url() const { return ""; }

}  // namespace tokamak
