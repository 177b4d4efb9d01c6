#include "tl/cuda/cuda_stream.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace plait::tl {

// As CUDA_MEMCPY2D of cuda.h.
struct Cuda::RowCopy {
  std::size_t from_x = 0, from_y = 0;
  unsigned from_kind = 0;
  const void* from_host = nullptr;
  Address from_device = 0;
  void* from_array = nullptr;
  std::size_t from_pitch = 0;
  std::size_t to_x = 0, to_y = 0;
  unsigned to_kind = 0;
  void* to_host = nullptr;
  Address to_device = 0;
  void* to_array = nullptr;
  std::size_t to_pitch = 0;
  std::size_t width = 0, height = 0;
};

namespace {

constexpr unsigned apart_from_default_streams = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned without_time = 2;                // CU_EVENT_DISABLE_TIMING
constexpr unsigned unified = 4;                     // CU_MEMORYTYPE_UNIFIED: the address says what it is

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent(const Cuda& cuda, Cuda::Context context, Cuda::Event event)
      : cuda_(cuda), context_(context), event_(event) {}
  ~CudaEvent() override { cuda_.end_event(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Cuda::Event get() const { return event_; }
  Status record_in_program_stream() {
    const Cuda::Outcome outcome =
        CudaContext(cuda_, context_).then([&] { return cuda_.record(event_, program_stream()); }).outcome();
    return outcome == Cuda::success ? Status() : cuda_.failure("record an event", outcome);
  }
  Result<bool> passed() override {
    const Cuda::Outcome outcome = CudaContext(cuda_, context_).then([&] { return cuda_.query(event_); }).outcome();
    if (outcome == Cuda::success) return true;
    if (outcome == Cuda::not_ready) return false;
    return cuda_.failure("copy", outcome);
  }

 private:
  const Cuda& cuda_;
  Cuda::Context context_;
  Cuda::Event event_;
};

Cuda::Event event_of(DeviceEvent& event) { return static_cast<CudaEvent&>(event).get(); }

// Pinned memory with a slot for each store under way, in which two rows stand apart.
class StoreSlots {
 public:
  static constexpr std::size_t row_bytes = DeviceStream::longest_store / 2, pitch = row_bytes + 64;

  explicit StoreSlots(const Cuda& cuda) : cuda_(cuda) {}
  ~StoreSlots() {
    if (memory_ != nullptr) cuda_.unpin(memory_.get());
  }
  StoreSlots(const StoreSlots&) = delete;
  StoreSlots& operator=(const StoreSlots&) = delete;

  // In the stream's context. nullptr: there is no such memory.
  std::byte* next() {
    if (memory_ == nullptr && !make()) return nullptr;
    return memory_.get() + next_++ % DeviceStream::most_stores * slot_bytes;
  }

 private:
  // Two rows, and two short ones.
  static constexpr std::size_t slot_bytes = 2 * pitch + 2 * 64, page = 4096;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  bool make() {
    if (refused_) return false;
    constexpr std::size_t bytes = (DeviceStream::most_stores * slot_bytes + page - 1) / page * page;
    std::unique_ptr<std::byte, Free> made(static_cast<std::byte*>(std::aligned_alloc(page, bytes)));
    refused_ = made == nullptr || cuda_.pin(made.get(), bytes, 0) != Cuda::success;
    if (!refused_) memory_ = std::move(made);
    return !refused_;
  }

  const Cuda& cuda_;
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t next_ = 0;
  bool refused_ = false;
};

class CudaStream final : public DeviceStream {
 public:
  CudaStream(const Cuda& cuda, Cuda::Context context, Cuda::Stream stream)
      : cuda_(cuda), context_(context), stream_(stream), slots_(cuda) {}
  ~CudaStream() override { cuda_.end_stream(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Status follow(DeviceEvent& event) override {
    return attempt("wait for an event", [&] { return cuda_.wait_for(stream_, event_of(event), 0); });
  }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    CudaContext context(cuda_, context_);
    context.then([&] { return cuda_.copy(as_address(to), as_address(from), bytes, stream_); });
    if (context.outcome() == Cuda::success) [[likely]]
      return {};
    return cuda_.failure("copy " + std::to_string(bytes) + " bytes", context.outcome());
  }

  // The driver hands short data for the device to its computing engine, together with the command. Processes that share
  // a device have that engine by turns of 140 us (H200: two at a time 143 us instead of 6, four 418). Two rows that
  // stand apart go by a copy engine, as long copies do: 8 and 14 us.
  Status store(void* to, const void* from, std::size_t bytes) override {
    if (bytes < 2) return copy(to, from, bytes);
    std::byte* slot = nullptr;
    const Status pinned = attempt("pin memory", [&] {
      slot = slots_.next();
      return Cuda::success;
    });
    if (!pinned.ok() || slot == nullptr) return pinned.ok() ? copy(to, from, bytes) : pinned;
    const auto* data = static_cast<const std::byte*>(from);
    auto* place = static_cast<std::byte*>(to);
    Status status = store_rows(place, data, bytes / 2, slot, StoreSlots::pitch);
    // The last two, of which one is there already.
    if (status.ok() && bytes % 2 != 0)
      status = store_rows(place + bytes - 2, data + bytes - 2, 1, slot + 2 * StoreSlots::pitch, 64);
    return status;
  }

  Status copy_rows(const Rows& rows) override {
    const Cuda::RowCopy copy{.from_kind = unified,
                             .from_device = as_address(rows.from),
                             .from_pitch = rows.from_pitch,
                             .to_kind = unified,
                             .to_device = as_address(rows.to),
                             .to_pitch = rows.to_pitch,
                             .width = rows.bytes,
                             .height = rows.rows};
    return attempt("copy rows", [&] { return cuda_.copy_rows(&copy, stream_); });
  }

  Status pack(std::byte* packed, const DeviceRuns& runs) override { return start(&CudaKernels::pack, packed, runs); }
  Status unpack(const DeviceRuns& runs, const std::byte* packed) override {
    return start(&CudaKernels::unpack, packed, runs);
  }

  Status reduce(const DeviceReduction& reduction) override {
    const CudaReduced reduced = cuda_reduced(reduction.op, reduction.element);
    if (reduced.kernel == CudaReduced::none) return DeviceStream::reduce(reduction);
    if (reduction.elements == 0 || reduction.results.empty()) return {};
    return attempt("start a kernel", [&] {
      CudaReduceCall call = reduce_call(reduction, reduced);
      return start_reduce(cuda_, kernels_in(cuda_, context_).reduce[reduced.kernel], stream_, call);
    });
  }

  Status move(std::span<const DeviceMove> moves) override {
    Cuda::Function kernel = nullptr;
    const Status found = attempt("find a kernel", [&] {
      kernel = kernels_in(cuda_, context_).move;
      return Cuda::success;
    });
    if (!found.ok() || kernel == nullptr) return found.ok() ? DeviceStream::move(moves) : found;
    CudaMoveCall call = move_call(moves);
    if (call.count == 0) return {};
    return attempt("start a kernel", [&] { return start_move(cuda_, kernel, stream_, call); });
  }

  Status pool(const DevicePooling& call) override {
    return start_tiles([&](const CudaFused& fused) { return start_pool(cuda_, fused, stream_, call); });
  }
  Status multiply(const DeviceProducts& call) override {
    return start_tiles([&](const CudaFused& fused) { return start_multiply(cuda_, fused, stream_, call); });
  }
  Status multiply(const DeviceMatrices& call) override {
    return start_tiles([&](const CudaFused& fused) { return start_multiply(cuda_, fused, stream_, call); });
  }
  Status multiply(const DeviceGather& call) override {
    return start_tiles([&](const CudaFused& fused) { return start_multiply(cuda_, fused, stream_, call); });
  }
  Status check(const DeviceLookups& call) override {
    return start_tiles([&](const CudaFused& fused) { return start_check(cuda_, fused, stream_, call); });
  }

  Status record(DeviceEvent& event) override {
    return attempt("record an event", [&] { return cuda_.record(event_of(event), stream_); });
  }
  void finish() noexcept override {
    CudaContext(cuda_, context_).then([&] { return cuda_.synchronize(stream_); });
  }

 private:
  template <class Call>
  Status attempt(const char* what, Call&& call) {
    CudaContext context(cuda_, context_);
    const Cuda::Outcome outcome = context.then(call).outcome();
    return outcome == Cuda::success ? Status() : cuda_.failure(what, outcome);
  }

  template <class Start>
  Status start_tiles(Start&& start) {
    return attempt("start a kernel", [&] { return start(kernels_in(cuda_, context_).fused); });
  }

  // Two rows of so many bytes, by way of the slot.
  Status store_rows(std::byte* to, const std::byte* from, std::size_t bytes, std::byte* slot, std::size_t pitch) {
    std::memcpy(slot, from, bytes);
    std::memcpy(slot + pitch, from + bytes, bytes);
    return copy_rows({.to = to, .to_pitch = bytes, .from = slot, .from_pitch = pitch, .bytes = bytes, .rows = 2});
  }

  Status start(Cuda::Function CudaKernels::*kernel, const std::byte* packed, const DeviceRuns& runs) {
    if (runs.begin == runs.end) return {};
    return attempt("start a kernel", [&] {
      CudaKernelCall call = kernel_call(packed, runs);
      return start_kernel(cuda_, kernels_in(cuda_, context_).*kernel, stream_, call);
    });
  }

  const Cuda& cuda_;
  Cuda::Context context_;
  Cuda::Stream stream_;
  StoreSlots slots_;
};

}  // namespace

Result<std::unique_ptr<DeviceEvent>> make_cuda_event(const Cuda& cuda, Cuda::Context context) {
  Cuda::Event event = nullptr;
  const Cuda::Outcome outcome =
      CudaContext(cuda, context).then([&] { return cuda.make_event(&event, without_time); }).outcome();
  if (outcome != Cuda::success) return cuda.failure("make an event", outcome);
  return std::unique_ptr<DeviceEvent>(std::make_unique<CudaEvent>(cuda, context, event));
}

Status record_in_program_stream(DeviceEvent& event) {
  return static_cast<CudaEvent&>(event).record_in_program_stream();
}

Result<std::unique_ptr<DeviceStream>> make_cuda_stream(const Cuda& cuda, Cuda::Context context) {
  Cuda::Stream stream = nullptr;
  const Cuda::Outcome outcome =
      CudaContext(cuda, context).then([&] { return cuda.make_stream(&stream, apart_from_default_streams); }).outcome();
  if (outcome != Cuda::success) return cuda.failure("make a stream", outcome);
  return std::unique_ptr<DeviceStream>(std::make_unique<CudaStream>(cuda, context, stream));
}

}  // namespace plait::tl
