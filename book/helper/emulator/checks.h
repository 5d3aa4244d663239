// What each access to memory must fulfil: bounds, alignment, a written value, no race.
#pragma once
#include "threads.h"

namespace emulator {

// Who touched some bytes, and after how many barriers and warp barriers.
struct Access {
  uint32_t block;
  uint16_t thread;
  bool valid, atomic;
  uint32_t barriers, warp_syncs;
};

// The last write, the last read, and the last read by a thread of another warp.
struct Shadow {
  Access write, read, other;
};

// An array that a kernel may touch; shadows of `grain` bytes each, if races are looked for.
struct Array {
  char *first, *last;
  int number;
  bool writable;
  unsigned grain;
  std::vector<Shadow> shadows;
};

enum Flag : int { CHECK = 1, RACES = 2, TRAFFIC = 4, FLUSH = 8 };

inline int flags;
inline std::vector<Array> arrays;
inline char *shared_first, *shared_last;
inline std::vector<Shadow> shared_shadows;
inline std::vector<bool> shared_written;
inline char *image_first, *image_last;  // the kernel's own code and tables
inline uint64_t block_number;

// Whether an access happened before whatever the current thread does now.
inline bool is_before(const Access& past) {
  if (past.block != static_cast<uint32_t>(block_number)) return false;
  if (past.thread == current->number || past.barriers != barriers) return true;
  bool same_warp = past.thread / WARP == current->warp();
  return same_warp && past.warp_syncs != warp_syncs[current->warp()];
}

inline void race(const char* what, const Access& past, size_t byte, int array, const void* pc) {
  char where[60];
  if (array < 0) snprintf(where, sizeof where, "in shared memory");
  else snprintf(where, sizeof where, "in array %d", array);
  fault("race (%s) %s, byte %zu (pc %p): thread %u of block %u and thread %u of block %u, no barrier between",
        what, where, byte, pc, past.thread, past.block, current->number, unsigned(block_number));
}

// Note an access to a byte of an array; of shared memory, if the array's number is negative.
inline void enter(Shadow& shadow, bool write, bool atomic, size_t byte, int array, const void* pc) {
  const Access& last = shadow.write;
  if (last.valid && !(atomic && last.atomic) && !is_before(last))
    race(write ? "two writes" : "a read after a write", last, byte, array, pc);
  Access now{static_cast<uint32_t>(block_number), static_cast<uint16_t>(current->number), true,
             atomic, barriers, warp_syncs[current->warp()]};
  if (write) {
    for (const Access* read : {&shadow.read, &shadow.other})
      if (read->valid && !(atomic && read->atomic) && !is_before(*read))
        race("a write after a read", *read, byte, array, pc);
    shadow.write = now;
    shadow.read.valid = shadow.other.valid = false;
    return;
  }
  // Two readers are kept; one that a later write of any warp would race with stays.
  const Access& other = shadow.other;
  bool stays = other.valid && (other.block != now.block ||
      (other.barriers == now.barriers && other.thread / WARP != now.thread / WARP));
  if (shadow.read.valid && !stays) shadow.other = shadow.read;
  shadow.read = now;
}

inline Array* array_of(const char* place) {
  for (Array& each : arrays)
    if (place >= each.first && place < each.last) return &each;
  return nullptr;
}

inline void out_of_bounds(const char* place, int size, bool write, const void* pc) {
  long nearest = 1L << 60;
  int who = -1;
  for (const Array& each : arrays) {
    long away = place >= each.first ? place - each.last : each.first - place;
    if (away < 0) away = 0;  // it begins inside and ends outside
    if (away < nearest) nearest = away, who = each.number;
  }
  fault("out of bounds: a %s of %d bytes, %ld bytes from array %d (pc %p)",
        write ? "write" : "read", size, nearest, who, pc);
}

inline void check_shared(char* place, int size, bool write, bool atomic, const void* pc) {
  if (place + size > shared_last)
    fault("out of bounds: a %s of %d bytes at the end of shared memory (pc %p)",
          write ? "write" : "read", size, pc);
  size_t first = place - shared_first;
  for (size_t i = first; i < first + size; i++) {
    if (write) shared_written[i] = true;
    else if (!shared_written[i])
      fault("shared memory is read before it is written, byte %zu (pc %p)", i, pc);
    enter(shared_shadows[i], write, atomic, first, -1, pc);
  }
}

inline void check_global(char* place, int size, bool write, bool atomic, const void* pc) {
  Array* array = array_of(place);
  if (!array && !write && place >= image_first && place < image_last) return;
  if (!array || place + size > array->last) out_of_bounds(place, size, write, pc);
  if (write && !array->writable)
    fault("a write to array %d, which is read-only (pc %p)", array->number, pc);
  if (!(flags & RACES)) return;
  size_t first = (place - array->first) / array->grain;
  size_t last = (place + size - 1 - array->first) / array->grain;
  for (size_t i = first; i <= last; i++) enter(array->shadows[i], write, atomic, place - array->first, array->number, pc);
}

void count_traffic(char* place, int size, bool write, bool shared, void* pc);

// Each load and store of a kernel comes here; g++ calls it, as it would call tsan.
inline void check(char* place, int size, bool write, bool atomic, void* pc) {
  if (!(flags & CHECK) || !current) return;
  if (place >= current->stack && place < current->stack + STACK) return;
  char* place_of_thread = reinterpret_cast<char*>(&emulated);
  if (place >= place_of_thread && place < place_of_thread + sizeof emulated) return;
  if (reinterpret_cast<uintptr_t>(place) % size)
    fault("misaligned: a %s of %d bytes, %d bytes behind a place for it (pc %p)",
          write ? "write" : "read", size, int(reinterpret_cast<uintptr_t>(place) % size), pc);
  bool shared = place >= shared_first && place < shared_last;
  (shared ? check_shared : check_global)(place, size, write, atomic, pc);
  if (flags & TRAFFIC) count_traffic(place, size, write, shared, pc);
}

}  // namespace emulator

#define CALLER __builtin_return_address(0)
#define HOOKS(n)                                                                              \
  void __tsan_read##n(void* p) { emulator::check((char*)p, n, false, false, CALLER); }        \
  void __tsan_write##n(void* p) { emulator::check((char*)p, n, true, false, CALLER); }        \
  void __tsan_unaligned_read##n(void* p) { emulator::check((char*)p, n, false, false, CALLER); } \
  void __tsan_unaligned_write##n(void* p) { emulator::check((char*)p, n, true, false, CALLER); }
extern "C" {
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
void __tsan_read_range(char* p, size_t n) {
  for (size_t i = 0; i < n; i += 4) emulator::check(p + i, 4, false, false, CALLER);
}
void __tsan_write_range(char* p, size_t n) {
  for (size_t i = 0; i < n; i += 4) emulator::check(p + i, 4, true, false, CALLER);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void emulated_touch(const void* p, int size, int write, int atomic, void* pc) {
  emulator::check((char*)p, size, write, atomic, pc);
}
}
