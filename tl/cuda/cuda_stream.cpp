#include "tl/cuda/cuda_stream.h"

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

class CudaStream final : public DeviceStream {
 public:
  CudaStream(const Cuda& cuda, Cuda::Context context, Cuda::Stream stream)
      : cuda_(cuda), context_(context), stream_(stream) {}
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

  Status record(DeviceEvent& event) override {
    return attempt("record an event", [&] { return cuda_.record(event_of(event), stream_); });
  }

 private:
  template <class Call>
  Status attempt(const char* what, Call&& call) {
    CudaContext context(cuda_, context_);
    const Cuda::Outcome outcome = context.then(call).outcome();
    return outcome == Cuda::success ? Status() : cuda_.failure(what, outcome);
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
