#include "pages/page_server.h"

#include "base/socket.h"
#include "tests/support/address_space.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>

namespace tokamak {
namespace {

class PageServerTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      server_.emplace(PageAddress{}, [&] { return make_(); });
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  int port() const {
    std::string url = server_->url();
    return std::stoi(url.substr(url.rfind(':') + 1));
  }

  // All that comes back for a request of that host.
  std::string ask(const std::string& host, const std::string& path = "/") const {
    FileDescriptor socket = connect_to("127.0.0.1", port(), deadline_in(10));
    send_all(socket.get(), "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    std::string answer(1 << 16, '\0');
    size_t length = 0;
    for (ssize_t count; (count = read(socket.get(), answer.data() + length, answer.size() - length)) > 0;)
      length += size_t(count);
    return answer.substr(0, length);
  }

  std::function<std::string()> make_ = [] { return std::string("<p>page</p>"); };
  std::optional<PageServer> server_;
};

TEST_F(PageServerTest, ServesThePageAsItIsNow) {
  EXPECT_TRUE(server_->url().starts_with("http://127.0.0.1:")) << server_->url();
  std::string answer = ask("localhost:" + std::to_string(port()));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_TRUE(answer.ends_with("<p>page</p>")) << answer;
  EXPECT_NE(answer.find("no-store"), answer.npos) << answer;
  make_ = [] { return std::string("<p>later</p>"); };
  EXPECT_TRUE(ask("127.0.0.1").ends_with("<p>later</p>"));
  EXPECT_TRUE(ask("127.0.0.1", "/etc/passwd").starts_with("HTTP/1.1 404"));
}

TEST_F(PageServerTest, AnswersNoOtherNames) {
  for (const char* host : {"evil.example", "localhost.evil.example", "127.evil.example:80"}) {
    std::string answer = ask(host);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << host << "\n" << answer;
    EXPECT_EQ(answer.find("<p>page"), answer.npos);
  }
  EXPECT_TRUE(ask("[::1]:80").starts_with("HTTP/1.1 200"));
}

TEST_F(PageServerTest, AnErrorIsAPage) {
  make_ = []() -> std::string { throw std::runtime_error("no <run>"); };
  std::string answer = ask("localhost");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500")) << answer;
  EXPECT_NE(answer.find("no &lt;run&gt;"), answer.npos) << answer;
}

TEST_F(PageServerTest, APortThatIsTakenIsRefused) {
  expect_user_error([&] { PageServer second({.port = port()}, make_); }, {"which is taken", "--port"});
}

// Room for the stack of the thread that waits for readers, and none for those that answer them.
TEST_F(PageServerTest, NoThreadsForReadersAreAnError) {
  if (test::has_sanitizer()) GTEST_SKIP() << test::kSanitized;
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto serve = [] {
    rlimit stack = {};
    ::getrlimit(RLIMIT_STACK, &stack);
    test::leave_address_space(stack.rlim_cur * 3 / 2);
    try {
      PageServer server({}, [] { return std::string(); });
    } catch (const UserError& error) {
      std::cerr << error.what();
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(serve(), testing::ExitedWithCode(0), "got no readers' threads");
}

}  // namespace
}  // namespace tokamak
