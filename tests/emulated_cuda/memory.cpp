#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"

namespace keel::emulated {
namespace {

constexpr std::size_t kPage = 4096;

// Room for an allocation, and a page behind it that stays as it was.
std::size_t room_for(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage + kPage; }

}  // namespace

void give_up(const char* why) {
  std::fprintf(stderr, "emulated CUDA: %s\n", why);
  std::abort();
}

Memory::Memory() {
  void* base = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) give_up("no addresses for a GPU's memory");
  madvise(base, kBytes, MADV_HUGEPAGE);  // a hint: opening and closing goes page by page
  base_ = static_cast<char*>(base);
}

void Memory::protect(bool from_all) {
  if (mprotect(base_, kBytes, from_all ? PROT_NONE : PROT_READ | PROT_WRITE) != 0)
    give_up("cannot open or close a GPU's memory");
}

void* Memory::allocate(std::size_t bytes) {
  std::size_t at = 0;  // first fit
  for (const auto& [offset, size] : taken_) {
    if (offset >= at && offset - at >= room_for(bytes)) break;
    at = offset + room_for(size);
  }
  if (bytes > kBytes || at > kBytes - room_for(bytes) || room_for(bytes) > kBytes) return nullptr;
  taken_[at] = bytes;
  in_use_ += bytes;
  const Open open(*this);
  std::memset(base_ + at, kFresh, room_for(bytes));
  return base_ + at;
}

bool Memory::free(void* data) {
  const auto found = taken_.find(static_cast<std::size_t>(static_cast<char*>(data) - base_));
  if (!spans(data) || found == taken_.end()) return false;
  const auto [offset, bytes] = *found;
  const Open open(*this);
  for (std::size_t i = bytes; i < room_for(bytes); ++i)
    if (static_cast<unsigned char>(base_[offset + i]) != kFresh)
      give_up("something was written behind the end of an allocation");
  std::memset(base_ + offset, kFresh, bytes);
  in_use_ -= bytes;
  taken_.erase(found);
  return true;
}

bool Memory::spans(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  return base_ <= at && at < base_ + kBytes;
}

bool Memory::holds(const void* address, std::size_t bytes) const {
  if (!spans(address)) return false;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - base_);
  auto next = taken_.upper_bound(offset);
  if (next == taken_.begin()) return false;
  const auto& [begin, size] = *--next;
  return offset + bytes <= begin + size;
}

}  // namespace keel::emulated
