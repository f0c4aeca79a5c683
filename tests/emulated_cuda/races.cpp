#include "races.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"

// Of the linker: where static variables lie.
extern "C" char __data_start[], _end[];

namespace keel::emulated {
namespace {

constexpr std::uintptr_t kWord = 4;
constexpr std::int32_t kSeveral = -1;

// A word's last write, and its reads: by kSeveral threads where more than one read it since the
// last barrier, by kSeveral blocks where more than one did.
struct Word {
  Toucher write, read;
  bool read_by_blocks = false;
};

// Words of one range of addresses. Pages of it that nobody touches cost nothing.
struct Shadow {
  std::uintptr_t begin = 0, end = 0;
  Word* words = nullptr;
  std::size_t room = 0;  // bytes that there are words for

  void cover(const void* from, std::size_t bytes) {
    const std::size_t size = (bytes / kWord + 2) * sizeof(Word);
    if (bytes > room || !words) {
      void* fresh = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (fresh == MAP_FAILED) give_up("no addresses to find races with");
      words = static_cast<Word*>(fresh);
      room = bytes;
    }
    begin = reinterpret_cast<std::uintptr_t>(from);
    end = begin + bytes;
  }
  bool holds(std::uintptr_t address) const { return begin <= address && address < end; }
};

Shadow device_memory[kDevices], statics, shared;
Toucher now;
std::uint32_t launches = 0;
bool running = false;

bool wanted() {
  static const char* said = std::getenv("KEEL_EMULATED_RACES");
  return !said || std::strcmp(said, "0") != 0;
}

[[noreturn]] void report(std::uintptr_t address, const Toucher& other, bool writes) {
  const char* where = shared.holds(address) || statics.holds(address) ? "shared" : "device";
  std::fprintf(stderr,
               "emulated CUDA: a race in %s memory, at %p: thread %d of block %u %s what thread %d "
               "of block %u has touched, %s\n",
               where, reinterpret_cast<void*>(address), now.thread, now.block,
               writes ? "writes" : "reads", other.thread, other.block,
               other.block == now.block ? "with no barrier between" : "in the same launch");
  std::abort();
}

// Whether `other`, of this launch, may be at the same time as now. Shared memory is the block's.
bool at_once(const Toucher& other, bool of_block) {
  if (other.launch != now.launch) return false;
  if (other.block != now.block) return !of_block;
  return other.barriers == now.barriers && other.thread != now.thread;
}

void touch_word(Word& word, std::uintptr_t address, bool writes, bool of_block) {
  if (at_once(word.write, of_block)) report(address, word.write, writes);
  if (writes) {
    const bool of_several = word.read.launch == now.launch && word.read_by_blocks && !of_block;
    if (of_several || at_once(word.read, of_block)) report(address, word.read, true);
    word.write = now;
    return;
  }
  Toucher& read = word.read;
  if (read.launch != now.launch) {
    read = now;
    word.read_by_blocks = false;
    return;
  }
  word.read_by_blocks = word.read_by_blocks || read.block != now.block;
  const bool same = read.block == now.block && read.barriers == now.barriers;
  const std::int32_t thread = same && read.thread != now.thread ? kSeveral : now.thread;
  read = now;
  read.thread = thread;
}

void touch_in(const Shadow& shadow, std::uintptr_t address, std::size_t bytes, bool writes,
              bool of_block) {
  for (std::uintptr_t at = (address - shadow.begin) / kWord;
       at <= (address + bytes - 1 - shadow.begin) / kWord; ++at)
    touch_word(shadow.words[at], address, writes, of_block);
}

}  // namespace

bool Races::begin_launch() {
  if (!wanted()) return false;
  if (!statics.words) {
    statics.cover(__data_start, static_cast<std::size_t>(_end - __data_start));
    for (int device = 0; device < kDevices; ++device)
      device_memory[device].cover(memory_of(device).base(), Memory::kBytes);
  }
  now.launch = ++launches;
  return running = true;
}

void Races::begin_block(std::uint32_t index, const void* memory, std::size_t bytes) {
  now.block = index;
  now.barriers = 0;
  if (bytes > 0)
    shared.cover(memory, bytes);
  else  // where an earlier launch had its own, anything may lie by now, a thread's stack too
    shared.begin = shared.end = 0;
}

void Races::pass_barrier() { ++now.barriers; }
void Races::switch_to(std::int32_t thread) { now.thread = thread; }
void Races::end_launch() { running = false; }

void Races::touch(const void* pointer, std::size_t bytes, bool writes) {
  if (!running) return;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (shared.holds(address)) {
    touch_in(shared, address, bytes, writes, true);
  } else if (statics.holds(address)) {
    touch_in(statics, address, bytes, writes, true);
  } else {
    for (const Shadow& memory : device_memory)
      if (memory.holds(address)) return touch_in(memory, address, bytes, writes, false);
  }
}

}  // namespace keel::emulated
