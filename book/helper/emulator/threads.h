// The threads of one block: how they take turns, and where they wait for one another.
#pragma once
#include <cstdarg>
#include <cstdio>

#include "fibers.h"

struct uint3 {
  unsigned x, y, z;
};

// What `threadIdx`, `blockIdx`, `blockDim`, `gridDim` read (the same struct as in cuda.h).
struct EmulatedPlace {
  uint3 thread, block, block_size, grid_size;
};
extern "C" {
EmulatedPlace emulated;
}

namespace emulator {

constexpr unsigned WARP = 32;
constexpr unsigned FULL = 0xffffffffu;

enum class State { ready, at_barrier, at_warp, done };

struct Thread {
  void* stack_pointer;
  char* stack;
  uint3 index;
  unsigned number;
  State state;
  int line;  // of the barrier or of the warp operation where it waits
  uint64_t given, received;
  int argument, width;
  unsigned warp() const { return number / WARP; }
  unsigned lane() const { return number % WARP; }
};

// A warp operation that some lanes have come to: all of `mask` have to.
struct Meeting {
  unsigned mask, arrived;
  int kind, line;
};

enum Kind { SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, BALLOT, ANY, ALL, SYNC };
enum Reduction { NONE, OR, AND, COUNT };

// The block that runs.
inline std::vector<Thread> threads;
inline std::vector<unsigned> ready;  // the numbers of threads that may go on
inline Thread* current;              // null: the scheduler
inline void* scheduler;              // its stack pointer
inline unsigned waiting;             // threads at the barrier
inline int barrier_line, barrier_reduction, barrier_result;
inline unsigned barriers;                // that all threads have passed
inline std::vector<unsigned> warp_syncs;  // that each warp has passed since a barrier
inline std::vector<std::vector<Meeting>> meetings;  // one list for each warp
inline void (*kernel)(void**);
inline void** arguments;

// What went wrong first, or an empty text.
inline char message[1200];
inline bool failed;

inline void describe_place(char* at, size_t room) {
  const auto& [t, b, bs, gs] = emulated;
  snprintf(at, room, " [block (%u,%u,%u), thread (%u,%u,%u)]", b.x, b.y, b.z, t.x, t.y, t.z);
}

// Note what is wrong, and leave the kernel for good.
__attribute__((format(printf, 1, 2))) inline void fault(const char* format, ...) {
  if (!failed) {
    failed = true;
    va_list rest;
    va_start(rest, format);
    int n = vsnprintf(message, 900, format, rest);
    va_end(rest);
    if (current) describe_place(message + n, sizeof message - n);
  }
  void* left;
  if (current) emulator_switch(&left, scheduler);
}

inline void run_thread() {  // what a fresh stack begins with
  kernel(arguments);
  current->state = State::done;
  void* left;
  emulator_switch(&left, scheduler);
}

inline void wait_as(State state, int line) {
  current->state = state, current->line = line;
}

inline void let_go(Thread& thread) {
  thread.state = State::ready;
  ready.push_back(thread.number);
}

// __syncthreads() and its kin: all threads of the block, at one line.
inline int barrier(int line, int predicate, int reduction) {
  if (waiting == 0) {
    barrier_line = line, barrier_reduction = reduction, barrier_result = reduction == AND;
  } else if (barrier_line != line) {
    fault("divergent barrier: %u threads wait at line %d, this one at line %d", waiting,
          barrier_line, line);
  }
  if (reduction == OR) barrier_result |= predicate != 0;
  if (reduction == AND) barrier_result &= predicate != 0;
  if (reduction == COUNT) barrier_result += predicate != 0;
  waiting++;
  wait_as(State::at_barrier, line);
  if (waiting == threads.size()) {
    for (Thread& thread : threads) thread.received = barrier_result, let_go(thread);
    waiting = 0, barriers++;
    for (unsigned& count : warp_syncs) count = 0;
  }
  emulator_switch(&current->stack_pointer, scheduler);
  return static_cast<int>(current->received);
}

// The lane whose value a lane receives in a shuffle.
inline unsigned source_lane(const Thread& thread, int kind) {
  int lane = thread.lane(), width = thread.width, first = lane / width * width;
  int to = thread.argument;
  if (kind == SHUFFLE) return first + (to & (width - 1));
  if (kind == SHUFFLE_UP) return lane - to < first ? lane : lane - to;
  if (kind == SHUFFLE_DOWN) return lane + to >= first + width ? lane : lane + to;
  int other = lane ^ to;
  return other >= first + width ? lane : other;
}

inline void finish(const Meeting& meeting, Thread* warp) {
  unsigned votes = 0;
  for (unsigned lane = 0; lane < WARP; lane++)
    if (meeting.mask >> lane & 1 && warp[lane].given) votes |= 1u << lane;
  for (unsigned lane = 0; lane < WARP; lane++) {
    if (!(meeting.mask >> lane & 1)) continue;
    Thread& thread = warp[lane];
    if (meeting.kind <= SHUFFLE_XOR) {
      unsigned source = source_lane(thread, meeting.kind);
      if (!(meeting.mask >> source & 1))
        fault("line %d: lane %u reads lane %u, which the mask %08x leaves out",
              meeting.line, lane, source, meeting.mask);
      thread.received = warp[source].given;
    } else if (meeting.kind == BALLOT) {
      thread.received = votes;
    } else if (meeting.kind == ANY) {
      thread.received = votes != 0;
    } else if (meeting.kind == ALL) {
      thread.received = votes == meeting.mask;
    }
    let_go(thread);
  }
  if (meeting.kind == SYNC) warp_syncs[warp->warp()]++;
}

// A warp operation: all lanes of the mask, at one line.
inline uint64_t meet(unsigned mask, uint64_t given, int kind, int argument, int width, int line) {
  unsigned first = current->warp() * WARP, lane = current->lane();
  unsigned there = threads.size() - first;  // threads of this warp, if fewer than 32
  if (kind == SYNC && mask == FULL && there < WARP) mask = (1u << there) - 1;
  if (!(mask >> lane & 1))
    fault("line %d: lane %u calls a warp operation whose mask %08x leaves it out", line, lane, mask);
  Meeting* ours = nullptr;
  for (Meeting& each : meetings[current->warp()]) {
    if (each.mask == mask) ours = &each;
    else if (each.mask & mask)
      fault("line %d: a warp operation of mask %08x, while lanes of it wait at line %d for mask %08x",
            line, mask, each.line, each.mask);
  }
  auto& open = meetings[current->warp()];
  if (!ours) open.push_back({mask, 0, kind, line}), ours = &open.back();
  if (ours->kind != kind || ours->line != line)
    fault("line %d: divergent warp operation, other lanes wait at line %d", line, ours->line);
  current->given = given, current->argument = argument, current->width = width;
  wait_as(State::at_warp, line);
  ours->arrived |= 1u << lane;
  if (ours->arrived == mask) {
    Meeting whole = *ours;
    *ours = open.back(), open.pop_back();
    finish(whole, &threads[first]);
  }
  emulator_switch(&current->stack_pointer, scheduler);
  return current->received;
}

}  // namespace emulator

extern "C" {
int emulated_barrier(int line, int predicate, int reduction) {
  return emulator::barrier(line, predicate, reduction);
}
uint64_t emulated_meet(unsigned mask, uint64_t given, int kind, int argument, int width, int line) {
  return emulator::meet(mask, given, kind, argument, width, line);
}
}
