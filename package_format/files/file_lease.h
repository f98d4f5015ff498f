// Read leases: before a process opens a file for writing or truncates it, the kernel notifies the lease's holder and
// makes the writer wait, for up to /proc/sys/fs/lease-break-time (45 s).
//
// The kernel's signal goes to a dedicated thread, which blocks it and waits for it: no handler is installed and no
// other thread sees the signal. The thread exists while there are leases.
#pragma once

#include <memory>

namespace sconce {

// Called on that thread.
class LeaseHolder {
 public:
  virtual ~LeaseHolder() = default;
  // Called on all holders when a process wants to write a file, before any lease is given up. Returns whether it is
  // this holder's file and the lease must still be given up. Must be quick.
  virtual bool asked() noexcept = 0;
  // Prepares for the write and gives up the lease; asked() returns false from then on.
  virtual void give_way() noexcept = 0;
};

// Returns 0, or why there is no lease: EAGAIN (a process has the file open for writing), EACCES (another user's file),
// EINVAL (a file system without leases, or whose files can be written without this kernel), EPERM, ENOMEM if the
// thread cannot be started. `fd` is open read-only.
int take_lease(int fd, std::shared_ptr<LeaseHolder> holder);
// Whether a process has the file open or mapped for writing. `fd` is open read-only and has no lease. Also false if
// the kernel cannot tell: where take_lease() returns EACCES or EINVAL.
bool is_open_for_writing(int fd) noexcept;
// Calls asked() on all holders, as if a file were about to be written.
void look_at_leases() noexcept;
// The thread starts no further action for this holder, and finishes a running one. Closing the file ends the lease.
void forget_lease(const LeaseHolder& holder) noexcept;

}  // namespace sconce
