#include "traffic.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "driver.h"

// Of the linker: where static variables lie.
extern "C" char __data_start[], _end[];

namespace keel::emulated {
namespace {

using Address = std::uintptr_t;

constexpr int kLanes = 32, kBanks = 32;
constexpr Address kWord = 4, kSector = 32;
constexpr std::size_t kWidest = 16;  // what an instruction moves for a lane

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

// What a warp's lanes access at once; 0: the lane does not.
struct Request {
  std::array<Address, kLanes> of_lane{};
};

// Numbers of units of `unit` bytes, each once, that lanes of `mask` access.
class Units {
 public:
  Units(const Request& request, std::uint32_t mask, int bytes, Address unit) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const Address at = request.of_lane[static_cast<std::size_t>(lane)];
      if (at == 0 || !(mask >> lane & 1)) continue;
      for (Address u = at / unit; u <= (at + static_cast<Address>(bytes) - 1) / unit; ++u)
        units_[count_++] = u;
    }
    std::sort(begin(), end());
    count_ = static_cast<std::size_t>(std::unique(begin(), end()) - begin());
  }
  Address* begin() { return units_.data(); }
  Address* end() { return units_.data() + count_; }
  std::int64_t count() const { return static_cast<std::int64_t>(count_); }

  // Of words: the passes over the banks that they take.
  std::int64_t passes() {
    std::array<std::int64_t, kBanks> of_bank{};
    for (const Address word : *this) ++of_bank[word % kBanks];
    return *std::max_element(of_bank.begin(), of_bank.end());
  }

 private:
  std::array<Address, kLanes*(kWidest / kWord + 1)> units_;
  std::size_t count_ = 0;
};

std::uint32_t group_mask(int group, int size) {
  return (size == kLanes ? ~0u : (1u << size) - 1) << (group * size);
}

// Whether every lane of the mask wants what its neighbour at `distance` wants, if that is there.
bool in_pairs(const Request& request, std::uint32_t mask, unsigned distance) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const Address mine = request.of_lane[lane], other = request.of_lane[lane ^ distance];
    if (mask >> lane & 1 && mine != 0 && other != 0 && mine != other) return false;
  }
  return true;
}

Requests shared_cost(const Request& request, int bytes) {
  Requests cost;
  cost.bytes = Units(request, ~0u, bytes, kWord).count() * static_cast<std::int64_t>(kWord);
  const int size = bytes <= 4 ? kLanes : bytes <= 8 ? kLanes / 2 : kLanes / 4;
  for (int group = 0; group < kLanes / size; ++group) {
    Units words(request, group_mask(group, size), bytes, kWord);
    cost.cost += words.passes();
    cost.fewest += words.count() > 0;
  }
  if (size == kLanes) {
    cost.paired = cost.cost;
    return cost;
  }
  for (int two = 0; two < kLanes / size / 2; ++two) {
    const std::uint32_t mask = group_mask(two, 2 * size);
    if (in_pairs(request, mask, 1) || in_pairs(request, mask, 2)) {
      cost.paired += Units(request, mask, bytes, kWord).passes();
    } else {
      for (int group = 2 * two; group < 2 * two + 2; ++group)
        cost.paired += Units(request, group_mask(group, size), bytes, kWord).passes();
    }
  }
  return cost;
}

struct Key {
  Address instruction;
  int bytes;
  Space space;
  bool writes;
  bool operator==(const Key&) const = default;
};
struct Hash {
  std::size_t operator()(const Key& key) const {
    return key.instruction * 8 + static_cast<std::size_t>(key.bytes) * 2 + key.writes;
  }
};

// An instruction, and its requests since the warp last met.
struct Counted {
  Requests sum;
  std::vector<Request> waiting;
  std::size_t used = 0;        // of `waiting`
  std::uint64_t turn = 0;      // the lane's, which
  std::size_t executions = 0;  // has come here so often
};

struct Kernel {
  std::int64_t launches = 0, loaded = 0, stored = 0;
  std::unordered_map<Key, Counted, Hash> sites;
};

struct State {
  std::vector<const void*> order;
  std::unordered_map<const void*, Kernel> kernels;
  Kernel* now = nullptr;
  std::vector<std::pair<const Key*, Counted*>> touched;  // since the warp last met
  // Sectors of this launch: 1 where it loaded one before it stored there, 2 where it stored.
  std::unordered_map<Address, unsigned char> sectors;
  Address shared = 0, shared_end = 0;
  std::uint64_t turn = 0;
  unsigned lane = 0;
};
State* state = nullptr;

bool space_of(Address at, Space& space) {
  const bool dynamic = state->shared <= at && at < state->shared_end;
  if (dynamic || (address_of(__data_start) <= at && at < address_of(_end))) {
    space = Space::shared;
    return true;
  }
  space = Space::device;
  for (int device = 0; device < kDevices; ++device)
    if (memory_of(device).spans(reinterpret_cast<const void*>(at))) return true;
  return false;
}

Requests device_cost(const Request& request, const Key& key) {
  Requests cost;
  cost.bytes = Units(request, ~0u, key.bytes, kWord).count() * static_cast<std::int64_t>(kWord);
  cost.fewest =
      (cost.bytes + static_cast<std::int64_t>(kSector) - 1) / static_cast<std::int64_t>(kSector);
  Units sectors(request, ~0u, key.bytes, kSector);
  cost.cost = sectors.count();
  for (const Address sector : sectors) {
    unsigned char& seen = state->sectors[sector];
    if (key.writes)
      seen |= 2;
    else if (seen == 0)
      seen = 1;
  }
  return cost;
}

void touch_part(Address at, std::size_t bytes, bool writes, Address instruction) {
  Key key{instruction, static_cast<int>(bytes), Space::device, writes};
  if (!space_of(at, key.space)) return;
  const auto found = state->now->sites.try_emplace(key).first;
  Counted& site = found->second;
  if (site.turn != state->turn) {
    site.turn = state->turn;
    site.executions = 0;
  }
  const std::size_t execution = site.executions++;
  if (execution == site.used) {
    if (execution == 0) state->touched.emplace_back(&found->first, &site);
    if (site.waiting.size() == execution) site.waiting.emplace_back();
    site.waiting[site.used++] = {};
  }
  site.waiting[execution].of_lane[state->lane] = at;
}

}  // namespace

bool Traffic::counts_ = false;

Requests& Requests::operator+=(const Requests& other) {
  requests += other.requests;
  lanes += other.lanes;
  bytes += other.bytes;
  cost += other.cost;
  fewest += other.fewest;
  paired += other.paired;
  return *this;
}

Requests KernelTraffic::total(Space space, bool writes) const {
  Requests sum;
  for (const Site& site : sites)
    if (site.space == space && site.writes == writes) sum += site.counted;
  return sum;
}

void Traffic::begin_launch(const void* kernel) {
  if (!state) return;
  const auto [at, fresh] = state->kernels.try_emplace(kernel);
  if (fresh) state->order.push_back(kernel);
  state->now = &at->second;
  ++state->now->launches;
  counts_ = true;
}

void Traffic::begin_block(const void* shared, std::size_t bytes) {
  state->shared = address_of(shared);
  state->shared_end = state->shared + bytes;
}

void Traffic::switch_to(unsigned thread) {
  state->lane = thread % kLanes;
  ++state->turn;
}

void Traffic::meet() {
  for (const auto& [key, site] : state->touched) {
    for (std::size_t i = 0; i < site->used; ++i) {
      const Request& request = site->waiting[i];
      Requests cost = key->space == Space::shared ? shared_cost(request, key->bytes)
                                                  : device_cost(request, *key);
      cost.requests = 1;
      cost.lanes = kLanes - std::count(request.of_lane.begin(), request.of_lane.end(), Address{0});
      site->sum += cost;
    }
    site->used = 0;
  }
  state->touched.clear();
}

void Traffic::end_launch() {
  counts_ = false;
  for (const auto& [sector, seen] : state->sectors) {
    state->now->loaded += seen & 1 ? static_cast<std::int64_t>(kSector) : 0;
    state->now->stored += seen & 2 ? static_cast<std::int64_t>(kSector) : 0;
  }
  state->sectors.clear();
}

void Traffic::touch(const void* address, std::size_t bytes, bool writes, const void* instruction) {
  for (std::size_t part = 0; part < bytes; part += kWidest)
    touch_part(address_of(address) + part, std::min(kWidest, bytes - part), writes,
               address_of(instruction));
}

std::vector<KernelTraffic> Traffic::of(const std::function<void()>& work) {
  State counted;
  state = &counted;
  work();
  state = nullptr;
  std::vector<KernelTraffic> kernels;
  for (const void* kernel : counted.order) {
    const Kernel& k = counted.kernels[kernel];
    KernelTraffic& traffic =
        kernels.emplace_back(KernelTraffic{kernel, k.launches, {}, k.loaded, k.stored});
    for (const auto& [key, site] : k.sites)
      traffic.sites.push_back({reinterpret_cast<const void*>(key.instruction), key.space,
                               key.writes, key.bytes, site.sum});
    std::sort(traffic.sites.begin(), traffic.sites.end(),
              [](const Site& a, const Site& b) { return a.instruction < b.instruction; });
  }
  return kernels;
}

}  // namespace keel::emulated
