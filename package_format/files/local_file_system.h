// File systems whose files only this kernel writes.
#pragma once

#include <sys/vfs.h>

#include <cstdint>

namespace sconce {

// On other file systems, leases do not stop writers on other machines, and the kernel does not report their changes.
inline bool is_local(int fd) noexcept {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return false;
  switch (static_cast<uint32_t>(status.f_type)) {
    case 0xEF53:      // ext2, ext3, ext4
    case 0x58465342:  // XFS
    case 0x9123683E:  // Btrfs
    case 0xCA451A4E:  // bcachefs
    case 0xF2F52010:  // F2FS
    case 0x2FC12FC1:  // ZFS
    case 0x794C7630:  // overlayfs
    case 0x01021994:  // tmpfs
    case 0x858458F6:  // ramfs
    case 0x73717368:  // squashfs
    case 0xE0F5E1E2:  // EROFS
      return true;
    default:
      return false;
  }
}

}  // namespace sconce
