#include "core/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <utility>

namespace plait {
namespace {

// Set-up code calls into MPI libraries, which are generous with their stack. Pages that are not touched cost nothing.
constexpr std::size_t stack_bytes = std::size_t{1} << 20;

class Stack {
 public:
  Stack() : guard_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* made = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (made == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(made);
    mprotect(base_, guard_bytes_, PROT_NONE);  // an overflow must not reach other memory
  }
  ~Stack() { munmap(base_, stack_bytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void* data() const { return base_ + guard_bytes_; }
  std::size_t bytes() const { return stack_bytes - guard_bytes_; }

 private:
  std::size_t guard_bytes_;
  std::byte* base_ = nullptr;
};

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  Stack stack;
  ucontext_t inside, outside;
  bool ended = false;

  static thread_local constinit State* current;
};
thread_local constinit Fiber::State* Fiber::State::current = nullptr;

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->body = std::move(body);
  getcontext(&state_->inside);
  state_->inside.uc_stack.ss_sp = state_->stack.data();
  state_->inside.uc_stack.ss_size = state_->stack.bytes();
  state_->inside.uc_link = &state_->outside;
  const auto address = reinterpret_cast<std::uintptr_t>(state_.get());
  makecontext(&state_->inside, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(static_cast<std::uint64_t>(address) >> 32));
}

Fiber::~Fiber() = default;

// makecontext() passes ints only.
void Fiber::enter(unsigned low, unsigned high) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* state = reinterpret_cast<State*>(static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low));
  state->body();
  state->ended = true;
}

bool Fiber::resume() {
  if (state_->ended) return true;
  State::current = state_.get();
  swapcontext(&state_->outside, &state_->inside);
  State::current = nullptr;
  return state_->ended;
}

bool Fiber::inside() { return State::current != nullptr; }

void Fiber::pause() {
  State* state = State::current;
  swapcontext(&state->inside, &state->outside);
}

}  // namespace plait
