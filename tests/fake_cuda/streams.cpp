// What the device is given, and when it is done.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "tests/fake_cuda/state.h"

namespace fake {
namespace {

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Up to two: the same in each run.
int roll() {
  driver().dice = driver().dice * 1664525u + 1013904223u;
  return static_cast<int>(driver().dice >> 16) % 3;
}

std::int64_t end_of(CUstream stream, Engine engine, std::size_t bytes) {
  std::int64_t begin = std::max(now_ns(), stream->end_ns);
  const Settings& settings = driver().settings;
  const double rate = engine == Engine::between_devices ? settings.peer_bytes_per_ns : settings.bytes_per_ns;
  if (engine == Engine::none || rate == 0) return begin + settings.latency_ns;
  std::int64_t& free_ns = driver().engine_free_ns[static_cast<unsigned>(engine) - 1];
  begin = std::max(begin, free_ns);
  free_ns = begin + static_cast<std::int64_t>(static_cast<double>(bytes) / rate);
  return free_ns + settings.latency_ns;
}

CUresult run_first(CUstream stream) {
  const Work work = std::move(stream->work.front());
  stream->work.pop_front();
  ++stream->done;
  if (work.follows != nullptr) {
    const CUresult result = run_until(work.follows->stream, work.follows->behind);
    delete work.follows;
    return result;
  }
  const CUresult result = work.run();
  if (result != success) break_down(result);
  return result;
}

// Whether all of a stream up to there is done. Asking is what gets it on.
bool is_done(CUstream stream, std::uint64_t behind) {
  while (stream->done < behind) {
    Work& work = stream->work.front();
    if (work.end_ns > now_ns() || work.refusals-- > 0) return false;
    if (work.follows != nullptr && !is_done(work.follows->stream, work.follows->behind)) return false;
    run_first(stream);
  }
  return true;
}

void wait_until_done(CUstream stream) {
  if (stream->given > stream->done) {
    const std::int64_t left = stream->end_ns - now_ns();
    if (left <= 0) return;
    const timespec time{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    nanosleep(&time, nullptr);
  }
}

}  // namespace

// 0, 1 and 2 are the default streams: one, here.
CUstream stream_of(CUstream stream) {
  constexpr std::uintptr_t defaults = 3;
  return reinterpret_cast<std::uintptr_t>(stream) < defaults ? &driver().default_stream : stream;
}

void give(CUstream stream, Engine engine, std::size_t bytes, std::function<CUresult()> run) {
  stream->end_ns = end_of(stream, engine, bytes);
  // The first behind an event: what is asked for are events, however many works are between two of them.
  const bool first = stream->given == stream->recorded;
  const int refusals = first && driver().settings.bytes_per_ns == 0 ? roll() : 0;
  stream->work.push_back({.run = std::move(run), .end_ns = stream->end_ns, .refusals = refusals});
  ++stream->given;
}

void break_down(CUresult result) {
  driver().broken = result;
  const auto drop = [](CUstream_st& stream) {
    stream.work.clear();
    stream.done = stream.given;
  };
  drop(driver().default_stream);
  for (CUstream stream : driver().streams) drop(*stream);
}

CUresult run_until(CUstream stream, std::uint64_t behind) {
  CUresult result = success;
  while (stream->done < behind && result == success) result = run_first(stream);
  return result;
}

}  // namespace fake

using namespace fake;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuStreamCreate"); state != success) return state;
  *stream = new CUstream_st;
  driver().streams.push_back(*stream);
  return success;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  const std::scoped_lock lock(driver().guard);
  return run_until(stream, stream->given);  // it stays for those that follow it
}

CUresult cuStreamSynchronize(CUstream stream) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuStreamSynchronize"); state != success) return state;
  stream = stream_of(stream);
  wait_until_done(stream);
  return run_until(stream, stream->given);
}

CUresult cuCtxSynchronize() { return cuStreamSynchronize(nullptr); }

CUresult cuStreamQuery(CUstream stream) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuStreamQuery"); state != success) return state;
  stream = stream_of(stream);
  return is_done(stream, stream->given) ? driver().broken : not_ready;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuStreamWaitEvent"); state != success) return state;
  if (event->stream == nullptr) return success;
  stream = stream_of(stream);
  stream->end_ns = std::max(stream->end_ns, event->end_ns);
  stream->work.push_back({.run = {}, .follows = new CUevent_st(*event)});
  ++stream->given;
  return success;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuEventCreate"); state != success) return state;
  *event = new CUevent_st;
  return success;
}

CUresult cuEventDestroy_v2(CUevent event) {
  delete event;
  return success;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuEventRecord"); state != success) return state;
  stream = stream_of(stream);
  *event = {.stream = stream, .behind = stream->given, .end_ns = stream->end_ns};
  stream->recorded = stream->given;
  return success;
}

CUresult cuEventQuery(CUevent event) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuEventQuery"); state != success) {
    if (state != invalid_context && driver().broken == success) break_down(state);
    return state;
  }
  if (event->stream == nullptr || is_done(event->stream, event->behind)) return driver().broken;
  return not_ready;
}

CUresult cuEventSynchronize(CUevent event) {
  const std::scoped_lock lock(driver().guard);
  if (event->stream == nullptr) return success;
  wait_until_done(event->stream);
  return run_until(event->stream, event->behind);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemcpyAsync"); state != success) return state;
  ++driver().copies;
  give(stream_of(stream), engine_between(to, from), bytes, [=] {
    std::memcpy(reach(to), reach(from), bytes);
    return count("execution");
  });
  return success;
}

CUresult cuMemcpy2DAsync_v2(const CudaRowCopy* copy, CUstream stream) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemcpyAsync"); state != success) return state;
  if (copy->from_pitch < copy->width || copy->to_pitch < copy->width) return invalid_value;
  ++driver().copies;
  give(stream_of(stream), engine_between(copy->to_device, copy->from_device), copy->width * copy->height,
       [copy = *copy] {
         for (std::size_t row = 0; row < copy.height; ++row)
           std::memcpy(reach(copy.to_device + row * copy.to_pitch), reach(copy.from_device + row * copy.from_pitch),
                       copy.width);
         return count("execution");
       });
  return success;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  const CUresult given = cuMemcpyAsync(to, reinterpret_cast<CUdeviceptr>(from), bytes, nullptr);
  return given == success ? cuStreamSynchronize(nullptr) : given;
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  const CUresult given = cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), from, bytes, nullptr);
  return given == success ? cuStreamSynchronize(nullptr) : given;
}

}  // extern "C"
