// Fibers: a thread of CUDA is a function with a stack of its own, entered and left at will.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace emulator {

constexpr size_t STACK = 64 << 10;  // bytes

// Keep the registers that a call must keep on this stack, note where it ends in `*save`,
// and go on with the stack `load`.
extern "C" void emulator_switch(void** save, void* load);

#if defined(__x86_64__)
asm(R"(
.text
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");

// What `emulator_switch` finds on a stack that nothing ran on: six registers, `entry`.
inline void* first_frame(char* top, void (*entry)()) {
  void** frame = reinterpret_cast<void**>(top);
  *--frame = nullptr;  // where `entry` would return to; it never does
  *--frame = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--frame = nullptr;
  return frame;
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");

inline void* first_frame(char* top, void (*entry)()) {
  uint64_t* frame = reinterpret_cast<uint64_t*>(top - 160);
  memset(frame, 0, 160);
  frame[11] = reinterpret_cast<uint64_t>(entry);  // x30: where `ret` goes
  return frame;
}
#else
#error "The emulator switches stacks on x86-64 and aarch64 only."
#endif

// Stacks that no thread stands on; a block's threads take them in turn.
inline std::vector<char*> free_stacks;

inline char* take_stack() {
  if (free_stacks.empty()) {
    void* memory = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
  char* stack = free_stacks.back();
  free_stacks.pop_back();
  return stack;
}

}  // namespace emulator
