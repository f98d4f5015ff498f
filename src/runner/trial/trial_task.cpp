#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "package_format/text/json_text.h"
#include "sconce/check.h"
#include "sconce/trial/trial_process.h"
#include "src/runner/trial/trial_channel.h"

namespace sconce {
namespace {

using namespace runner;

void receive(void* to, size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = ::recv(kTrialSocket, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    SCONCE_CHECK(n > 0, kInvalidArgument, "no task for a trial comes: this command is for sconce itself");
    at += n;
    size -= static_cast<size_t>(n);
  }
}

// The descriptors that come with one byte.
void receive_descriptors(size_t count, std::vector<int>& descriptors) {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFilesPerMessage * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  do n = ::recvmsg(kTrialSocket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  const cmsghdr* const header = n == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  SCONCE_CHECK(header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(count * sizeof(int)),
               kInvalidArgument, "a trial's task lacks files");
  const size_t before = descriptors.size();
  descriptors.resize(before + count);
  std::memcpy(descriptors.data() + before, CMSG_DATA(header), count * sizeof(int));
}

struct Mappings {
  std::vector<std::span<std::byte>> pages;
  ~Mappings() {
    for (const std::span<std::byte> page : pages)
      if (!page.empty()) ::munmap(page.data(), page.size());
  }
};

}  // namespace

TrialTask receive_trial() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  TrialHead head;
  receive(&head, sizeof head);
  SCONCE_CHECK(head.magic == kTrialMagic && head.files <= kMaxTrialFiles && head.text <= kMaxTrialText,
               kInvalidArgument, "a trial's task is of another version");
  if (static_cast<uint64_t>(::getppid()) != head.parent) ::_exit(1);  // it ended before it could be watched
  // The kernel ends this process first if memory runs out.
  if (const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0) {
    [[maybe_unused]] const ssize_t written = ::write(score, "1000", 4);
    ::close(score);
  }
  std::vector<int> descriptors;
  while (descriptors.size() < head.files)
    receive_descriptors(std::min<size_t>(head.files - descriptors.size(), kFilesPerMessage), descriptors);
  std::string text(head.text, '\0');
  receive(text.data(), text.size());
  const SortedJson document = parse_json(text, "a trial's task");
  const SortedJson& files = document.at("files");
  SCONCE_CHECK(files.size() == descriptors.size(), kInvalidArgument, "a trial's task has other files than it says");
  const auto mappings = std::make_shared<Mappings>();
  std::vector<MemoryFile> contents;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto size = files[i].at("bytes").get<size_t>();
    void* const data = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptors[i], 0) : nullptr;
    SCONCE_CHECK(data != MAP_FAILED, kIo, "cannot map file: ", std::strerror(errno));
    mappings->pages.emplace_back(static_cast<std::byte*>(data), size);
    contents.push_back({files[i].at("path").get<std::string>(), mappings->pages.back()});
    ::close(descriptors[i]);
  }
  const auto name = document.at("name").get<std::string>();
  TrialTask task;
  task.request = document.at("request").get<std::string>();
  SCONCE_CHECK(head.directory == 1 || contents.size() == 1, kInvalidArgument, "a trial's task has no single file");
  task.package =
      head.directory == 1 ? Package::open(contents, mappings, name) : Package::open(contents[0].bytes, mappings, name);
  return task;
}

void report_trial(std::string_view line) {
  std::string text(line);
  text += '\n';
  for (std::string_view left = text; !left.empty();) {
    const ssize_t n = ::send(kTrialSocket, left.data(), left.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    SCONCE_CHECK(n > 0, kIo, "nobody reads a trial's report: ", std::strerror(errno));
    left.remove_prefix(static_cast<size_t>(n));
  }
}

void end_trial() {
  report_trial(kTrialEnd);
  ::_exit(0);
}

}  // namespace sconce
