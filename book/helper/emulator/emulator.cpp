// Run a kernel of CUDA on a CPU: one block after the other, a fiber for each thread.
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <link.h>
#include <numeric>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "traffic.h"

namespace emulator {

constexpr uint64_t COUNTED = 2;      // blocks whose traffic is counted

uint64_t state;  // of the random numbers (xorshift)
uint64_t draw() {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

// An order of 0 .. count - 1: steps of a size that meets all of them.
struct Order {
  uint64_t count, step = 1, offset = 0;
  Order(uint64_t count, bool shuffled) : count(count) {
    if (!shuffled || count < 2) return;
    offset = draw() % count;
    do step = draw() % count;
    while (std::gcd(step, count) != 1);
  }
  uint64_t at(uint64_t i) const { return (__uint128_t(i) * step + offset) % count; }
};

// The parts of a module that may be read and not written: code, tables of constants.
int find_image(dl_phdr_info* image, size_t, void* address) {
  char *least = nullptr, *most = nullptr;
  for (int i = 0; i < image->dlpi_phnum; i++) {
    const auto& part = image->dlpi_phdr[i];
    char* first = (char*)image->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || part.p_flags & PF_W) continue;
    least = least ? std::min(least, first) : first;
    most = std::max(most, first + part.p_memsz);
  }
  if ((char*)address < least || (char*)address >= most) return 0;
  image_first = least, image_last = most;
  return 1;
}

sigjmp_buf out_of_kernel;
void on_fault(int, siginfo_t* info, void*) {
  if (!current) {  // not ours: the next one ends the process, as it would have
    signal(SIGSEGV, SIG_DFL), signal(SIGBUS, SIG_DFL);
    return;
  }
  failed = true;
  int n = snprintf(message, sizeof message, "segmentation fault at %p", info->si_addr);
  describe_place(message + n, sizeof message - n);
  siglongjmp(out_of_kernel, 1);
}

// While one lives, a segmentation fault inside of a kernel is an error of its launch.
struct Guarded {
  struct sigaction segv, bus;
  stack_t before;
  char* stack = static_cast<char*>(malloc(1 << 16));
  Guarded() {
    stack_t ours{};
    ours.ss_sp = stack, ours.ss_size = 1 << 16;
    sigaltstack(&ours, &before);
    struct sigaction handler{};
    handler.sa_sigaction = on_fault;
    handler.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &handler, &segv), sigaction(SIGBUS, &handler, &bus);
  }
  ~Guarded() {
    sigaction(SIGSEGV, &segv, nullptr), sigaction(SIGBUS, &bus, nullptr);
    if (before.ss_flags & SS_DISABLE || before.ss_sp) sigaltstack(&before, nullptr);
    free(stack);
  }
};

bool refuse(const char* what, unsigned x, unsigned y, unsigned z) {
  snprintf(message, sizeof message, "%s: (%u, %u, %u)", what, x, y, z);
  return true;
}

bool is_refused(uint3 grid, uint3 block) {
  uint64_t together = uint64_t(block.x) * block.y * block.z;
  if (!together || together > 1024 || block.z > 64)
    return refuse("a block has 1 to 1,024 threads, at most 64 along z", block.x, block.y, block.z);
  if (!grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    return refuse("a grid has 1 to 2^31 - 1 blocks along x, 65,535 along y and z", grid.x, grid.y, grid.z);
  return false;
}

void begin_block(uint64_t number, unsigned count) {
  const uint3& size = emulated.grid_size;
  block_number = number;
  emulated.block = {unsigned(number % size.x), unsigned(number / size.x % size.y),
                    unsigned(number / size.x / size.y)};
  size_t shared = shared_last - shared_first;
  if (shared) memset(shared_first, 0xff, shared);  // NaNs, and integers of -1
  if (flags & CHECK) shared_shadows.assign(shared, Shadow{}), shared_written.assign(shared, false);
  waiting = barriers = 0;
  warp_syncs.assign((count + WARP - 1) / WARP, 0);
  meetings.assign((count + WARP - 1) / WARP, {});
  ready.clear();
}

void begin_thread(unsigned number) {
  Thread& thread = threads[number];
  const uint3& size = emulated.block_size;
  thread.number = number;
  thread.index = {number % size.x, number / size.x % size.y, number / size.x / size.y};
  thread.stack = take_stack();
  thread.stack_pointer = first_frame(thread.stack + STACK, run_thread);
  thread.state = State::ready;
}

void deadlock(unsigned finished) {
  unsigned at_barrier = 0, at_warp = 0;
  int line = 0;
  for (const Thread& thread : threads) {
    at_barrier += thread.state == State::at_barrier, at_warp += thread.state == State::at_warp;
    if (thread.state != State::done) line = thread.line;
  }
  fault("deadlock: %u threads wait at a barrier and %u at a warp operation (line %d); %u have returned",
        at_barrier, at_warp, line, finished);
}

// Which thread goes on: a new one, or one that is ready; at random, if there is a seed.
unsigned next_thread(const Order& order, unsigned& started, bool shuffled) {
  bool more = started < threads.size();
  if (more && (ready.empty() || !shuffled || draw() & 1)) {
    unsigned number = order.at(started++);
    begin_thread(number);
    return number;
  }
  std::swap(ready[shuffled ? draw() % ready.size() : 0], ready.back());
  unsigned number = ready.back();
  ready.pop_back();
  return number;
}

void run_block(bool shuffled) {
  Order order(threads.size(), shuffled);
  unsigned started = 0, finished = 0;
  for (Thread& thread : threads) thread.state = State::done, thread.stack = nullptr;
  while (finished < threads.size() && !failed) {
    if (started == threads.size() && ready.empty()) return deadlock(finished);
    current = &threads[next_thread(order, started, shuffled)];
    emulated.thread = current->index;
    emulator_switch(&scheduler, current->stack_pointer);
    if (current->state == State::done) {
      finished++;
      free_stacks.push_back(current->stack);
      current->stack = nullptr;
    }
    current = nullptr;
  }
}

void run_grid(uint64_t seed, uint64_t first, uint64_t last) {
  const uint3 &grid = emulated.grid_size, &block = emulated.block_size;
  uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z, counted = 0;
  Order order(blocks, seed != 0);
  threads.assign(block.x * block.y * block.z, Thread{});
  touches.assign(flags & TRAFFIC ? threads.size() : 0, {});
  int wanted = flags;
  for (uint64_t i = 0; i < blocks && !failed; i++) {
    uint64_t number = order.at(i);
    if (number < first || number >= last) continue;
    if (counted++ >= COUNTED) flags = wanted & ~TRAFFIC;
    begin_block(number, threads.size());
    run_block(seed != 0);
    if (flags & TRAFFIC && !failed) fold_touches();
  }
}

}  // namespace emulator

extern "C" {

struct EmulatedArray {
  char *first, *last;
  int writable;
  unsigned grain;
};

struct EmulatedLaunch {
  void (*kernel)(void**);
  void** arguments;
  void (*shared_range)(char**, char**);
  uint3 grid, block;
  int flags;
  uint64_t seed, first_block, last_block;
  const EmulatedArray* arrays;
  int array_count;
};

const char* emulator_message() { return emulator::message; }

// Run a kernel; 0 if nothing was wrong, else `emulator_message` says what was.
int emulator_launch(const EmulatedLaunch* launch) {
  using namespace emulator;
  kernel = launch->kernel, arguments = launch->arguments, flags = launch->flags;
  failed = false, message[0] = 0, current = nullptr, counts.clear();
  state = launch->seed * 0x9e3779b97f4a7c15ull + 0x1234567ull;
  emulated.grid_size = launch->grid, emulated.block_size = launch->block;
  launch->shared_range(&shared_first, &shared_last);
  if (is_refused(launch->grid, launch->block)) return 1;
  arrays.clear();
  for (int i = 0; i < launch->array_count; i++) {
    const EmulatedArray& each = launch->arrays[i];
    size_t grains = flags & RACES ? (each.last - each.first + each.grain - 1) / each.grain : 0;
    arrays.push_back({each.first, each.last, i, each.writable != 0, each.grain,
                      std::vector<Shadow>(grains)});
  }
  dl_iterate_phdr(find_image, (void*)launch->kernel);
#if defined(__x86_64__)
  unsigned control = _mm_getcsr();
  if (flags & FLUSH) _mm_setcsr(control | 0x8040);  // subnormal numbers are 0
#endif
  {
    Guarded guarded;
    if (sigsetjmp(out_of_kernel, 0) == 0) run_grid(launch->seed, launch->first_block, launch->last_block);
  }
#if defined(__x86_64__)
  _mm_setcsr(control);
#endif
  for (Thread& thread : threads)
    if (thread.stack) free_stacks.push_back(thread.stack), thread.stack = nullptr;
  current = nullptr;
  return failed;
}

struct EmulatedCounts {
  void* pc;
  uint64_t requests, bytes, sectors, least, turns;
  int write, shared;
};

// Write down what was counted, at most `room` instructions, and return how many there are.
int emulator_counts(EmulatedCounts* out, int room) {
  int n = 0;
  for (const auto& [pc, c] : emulator::counts) {
    if (n < room) out[n] = {pc, c.requests, c.bytes, c.sectors, c.least, c.turns, c.write, c.shared};
    n++;
  }
  return n;
}
}
