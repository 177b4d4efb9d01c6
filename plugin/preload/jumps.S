// The functions that libplait.so exports: each is one jump through its slot in plait_slots, with all arguments as they
// came. A slot first leads to plait_first_call, which gives plait_fill() (picker.cpp) the slot's address and goes on to
// what it returns. Arguments are integers and pointers, so that no other registers need to be kept.
#include "plugin/preload/functions.h"

#if defined(__x86_64__)

.macro plait_jump name
  jmp *.Lslot_\name(%rip)
.endm

.macro plait_first name
  leaq .Lslot_\name(%rip), %r11
  jmp plait_first_call
.endm

.macro plait_define_first_call
  .cfi_startproc
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  subq $8, %rsp  // the stack is aligned to 16 bytes at a call
  .cfi_adjust_cfa_offset 56
  movq %r11, %rdi
  call plait_fill
  movq %rax, %r11
  addq $8, %rsp
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  .cfi_adjust_cfa_offset -56
  jmp *%r11
  .cfi_endproc
.endm

#elif defined(__aarch64__)

.macro plait_jump name
  adrp x16, .Lslot_\name
  ldr x16, [x16, #:lo12:.Lslot_\name]
  br x16
.endm

.macro plait_first name
  adrp x17, .Lslot_\name
  add x17, x17, #:lo12:.Lslot_\name
  b plait_first_call
.endm

.macro plait_define_first_call
  .cfi_startproc
  stp x29, x30, [sp, #-80]!
  .cfi_def_cfa_offset 80
  .cfi_offset x29, -80
  .cfi_offset x30, -72
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  mov x0, x17
  bl plait_fill
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldp x29, x30, [sp], #80
  .cfi_restore x29
  .cfi_restore x30
  .cfi_def_cfa_offset 0
  br x16
  .cfi_endproc
.endm

#else
#error "libplait.so has jumps for x86_64 and aarch64"
#endif

#define PLAIT_SLOTS .section .data.rel.plait_slots, "aw", %progbits

.macro plait_export name
  .text
  .balign 16
  .globl \name
  .type \name, %function
\name:
  .cfi_startproc
  plait_jump \name
.Lfirst_\name:
  plait_first \name
  .cfi_endproc
  .size \name, . - \name
  PLAIT_SLOTS
.Lslot_\name:
  .quad .Lfirst_\name
.endm

  PLAIT_SLOTS
  .balign 8
  .globl plait_slots
  .hidden plait_slots
plait_slots:

  .text
  .hidden plait_fill
  .type plait_first_call, %function
plait_first_call:
  plait_define_first_call
  .size plait_first_call, . - plait_first_call

// In the order of Entries (implementation.h).
#define PLAIT_EXPORT_NAMES(Name, name, parameters, arguments) plait_export MPI_##Name ; plait_export PMPI_##Name ;
#define PLAIT_EXPORT_FORMS(Name, name, parameters, arguments) \
  plait_export MPI_I##name ; plait_export PMPI_I##name ; \
  plait_export MPI_##Name##_init ; plait_export PMPI_##Name##_init ;
#define PLAIT_EXPORT_EXTENSIONS(Name, name, parameters, arguments) \
  plait_export MPIX_##Name##_init ; plait_export PMPIX_##Name##_init ;
#define PLAIT_EXPORT_API(name) plait_export plait_##name ;
PLAIT_INTERPOSED(PLAIT_EXPORT_NAMES)
PLAIT_COLLECTIVES(PLAIT_EXPORT_FORMS)
PLAIT_COLLECTIVES(PLAIT_EXPORT_EXTENSIONS)
PLAIT_API_FUNCTIONS(PLAIT_EXPORT_API)

  .section .note.GNU-stack, "", %progbits
