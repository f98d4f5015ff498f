// Read leases: the system tells who holds one before anybody opens the file to write it or truncates it, and keeps the
// writer waiting meanwhile, for as long as /proc/sys/fs/lease-break-time says (45 s).
//
// The signal that tells goes to a thread of our own, which alone blocks it and waits for it: no handler is installed
// and no other thread sees it. The thread is there while any lease is.
#pragma once

#include <memory>

namespace sconce {

// Called on that thread.
class LeaseHolder {
 public:
  virtual ~LeaseHolder() = default;
  // Somebody wants to write some file: whether it is this one's, and it has still to give way. Called of all holders
  // before any of them gives way; takes no time.
  virtual bool asked() noexcept = 0;
  // Does what is to be done before the file is written, and gives the lease up: asked() is false from then on.
  virtual void give_way() noexcept = 0;
};

// 0, or why there is none: EAGAIN (somebody has the file open to write it), EACCES (another user's), EINVAL (a file
// system without leases, or one whose files others can write unseen by this system), EPERM, ENOMEM
// of a thread that cannot be started. `fd` is open read-only.
int take_lease(int fd, std::shared_ptr<LeaseHolder> holder);
// Has all holders asked, as if some file were to be written.
void look_at_leases() noexcept;
// The thread does not begin anything with this one any more; what it has begun it ends. Closing the file ends the
// lease.
void forget_lease(const LeaseHolder& holder) noexcept;

}  // namespace sconce
