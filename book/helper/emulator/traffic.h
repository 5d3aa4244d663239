// How memory is reached: the lanes of a warp at one instruction are one request.
//
// A request to global memory moves sectors of 32 bytes; one to shared memory takes as many
// turns as the most different words that one of the 32 banks holds.
#pragma once
#include <algorithm>
#include <map>
#include <unordered_map>

#include "checks.h"

namespace emulator {

struct Counts {
  uint64_t requests, bytes, sectors, least, turns;
  bool write, shared;
};

struct Touch {
  void* pc;
  char* place;
  int size;
  bool write, shared;
};

inline std::vector<std::vector<Touch>> touches;  // of each thread, in order
inline std::map<void*, Counts> counts;           // of each instruction

inline void count_traffic(char* place, int size, bool write, bool shared, void* pc) {
  touches[current->number].push_back({pc, place, size, write, shared});
}

// The different units (sectors, or words of banks) that some touches meet.
inline std::vector<uint64_t> units(const std::vector<const Touch*>& request, int unit) {
  std::vector<uint64_t> met;
  for (const Touch* touch : request) {
    uint64_t first = reinterpret_cast<uint64_t>(touch->place);
    for (uint64_t u = first / unit; u <= (first + touch->size - 1) / unit; u++) met.push_back(u);
  }
  std::sort(met.begin(), met.end());
  met.erase(std::unique(met.begin(), met.end()), met.end());
  return met;
}

inline void add(const std::vector<const Touch*>& request) {
  const Touch& one = *request[0];
  Counts& entry = counts[one.pc];
  entry.requests++, entry.write = one.write, entry.shared = one.shared;
  for (const Touch* touch : request) entry.bytes += touch->size;
  if (one.shared) {
    auto words = units(request, 4);
    unsigned banks[WARP] = {}, most = 0;
    for (uint64_t word : words) most = std::max(most, ++banks[word % WARP]);
    entry.turns += most, entry.least += (words.size() + WARP - 1) / WARP;
  } else {
    auto bytes = units(request, 1);
    entry.sectors += units(request, 32).size(), entry.least += (bytes.size() + 31) / 32;
  }
}

// Put the touches of a block's threads together: the k-th time that an instruction runs
// in each lane of a warp is one request.
inline void fold_touches() {
  for (size_t first = 0; first < touches.size(); first += WARP) {
    std::map<std::pair<void*, unsigned>, std::vector<const Touch*>> requests;
    for (size_t i = first; i < std::min(touches.size(), first + WARP); i++) {
      std::unordered_map<void*, unsigned> times;
      for (const Touch& each : touches[i]) requests[{each.pc, times[each.pc]++}].push_back(&each);
    }
    for (const auto& [key, request] : requests) add(request);
  }
  for (auto& each : touches) each.clear();
}

}  // namespace emulator
