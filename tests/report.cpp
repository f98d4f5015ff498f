// Which test cases ran and how each ended, as a JUnit file under the name that SCONCE_TEST_REPORT gives, beside what
// doctest prints. It is whole at any time: a case is an error from its start until its end, so that a program that is
// killed has said which case it did not finish.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string escaped(const char* text) {
  std::string result;
  for (; *text; ++text) {
    if (*text == '&')
      result += "&amp;";
    else if (*text == '<')
      result += "&lt;";
    else if (*text == '"')
      result += "&quot;";
    else
      result += static_cast<unsigned char>(*text) < ' ' ? ' ' : *text;
  }
  return result;
}

class Report : public doctest::IReporter {
 public:
  explicit Report(const doctest::ContextOptions& options) {
    const char* const path = std::getenv("SCONCE_TEST_REPORT");
    if (!path || options.count || options.list_test_cases) return;
    path_ = path;
    unsetenv("SCONCE_TEST_REPORT");  // is not for programs that tests start
    write("<testsuite name=\"" + escaped(options.binary_name.c_str()) + "\">\n", O_CREAT | O_TRUNC);
  }

  void test_case_start(const doctest::TestCaseData& test) override {
    test_ = "<testcase classname=\"" + escaped(test.m_file.c_str()) + "\" name=\"" + escaped(test.m_name) + '"';
    write(test_ + "><error message=\"it did not end\"/></testcase>\n");
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    char time[40];
    std::snprintf(time, sizeof time, " time=\"%.3f\"", stats.seconds);
    const std::string text =
        test_ + time + (stats.testCaseSuccess ? "/>\n" : "><failure message=\"see the log\"/></testcase>\n");
    write(text);
    at_ += static_cast<off_t>(text.size());
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  // From the end of what is settled on. No file stays open, since tests count them; a forked child writes nothing.
  void write(const std::string& text, int flags = 0) {
    if (path_.empty() || getpid() != owner_) return;
    const std::string all = text + "</testsuite>\n";
    const int file = open(path_.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
    if (file < 0 || pwrite(file, all.data(), all.size(), at_) != static_cast<ssize_t>(all.size()) ||
        ftruncate(file, at_ + static_cast<off_t>(all.size())) != 0) {
      std::perror(path_.c_str());  // tests that nobody counts have not been run
      _exit(2);
    }
    close(file);
    if (flags) at_ = static_cast<off_t>(text.size());
  }

  const pid_t owner_ = getpid();
  std::string path_;
  std::string test_;
  off_t at_ = 0;
};

DOCTEST_REGISTER_LISTENER("report", 0, Report);

}  // namespace
