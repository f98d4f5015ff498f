// Read leases: before anybody opens a file for writing or truncates it, the kernel tells the lease's holder and makes
// the writer wait, for up to /proc/sys/fs/lease-break-time (45 s).
//
// The kernel's signal goes to a thread of our own, which alone blocks it and waits for it: no handler is installed and
// no other thread sees it. The thread exists while there are leases.
#pragma once

#include <memory>

namespace sconce {

// Called on that thread.
class LeaseHolder {
 public:
  virtual ~LeaseHolder() = default;
  // Called on all holders before any gives way: somebody wants to write some file. Returns whether it is this one's and
  // the holder still has to give way. Must be quick.
  virtual bool asked() noexcept = 0;
  // Prepares for the write and gives up the lease; asked() returns false from then on.
  virtual void give_way() noexcept = 0;
};

// Returns 0, or why there is no lease: EAGAIN (somebody has the file open for writing), EACCES (another user's file),
// EINVAL (a file system without leases, or whose files others can write unseen by this kernel), EPERM, ENOMEM if the
// thread cannot be started. `fd` is open read-only.
int take_lease(int fd, std::shared_ptr<LeaseHolder> holder);
// Whether somebody has the file open for writing, or mapped so. `fd` is open read-only and has no lease. False also
// where the kernel does not tell: where take_lease() gives EACCES or EINVAL.
bool is_open_for_writing(int fd) noexcept;
// Calls asked() on all holders, as if some file were to be written.
void look_at_leases() noexcept;
// The thread starts nothing more for this holder, and finishes what it has started. Closing the file ends the lease.
void forget_lease(const LeaseHolder& holder) noexcept;

}  // namespace sconce
