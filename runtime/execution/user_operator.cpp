#include "runtime/execution/user_operator.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/execution/elements.h"

namespace plait::runtime {
namespace {

constexpr std::size_t piece_bytes = 32 * 1024;  // both operands of a piece stay in the first-level caches

// What the host's operands have at least where they begin: buffers of malloc, and the program's own, which are mostly
// so.
constexpr std::size_t host_alignment = alignof(std::max_align_t);
// Operands of no more than this always have it: a copy costs less than the call of the operator. All that is written
// into a line of its own, behind a number, is as short.
constexpr std::size_t always_aligned_bytes = 256;

// The largest multiple of a cache line that is not above a bound.
std::ptrdiff_t line_below(std::ptrdiff_t bound) {
  constexpr auto line = static_cast<std::ptrdiff_t>(line_bytes);
  return (bound >= 0 ? bound : bound - line + 1) / line * line;
}

}  // namespace

void UserOperator::start(OperatorHandle op, const Layout& type) {
  op_ = op;
  error_ = 0;
  type_ = &type;
  // Elements that run backwards in memory are taken one by one.
  piece_ = type.extent > 0 ? std::max<std::size_t>(piece_bytes / std::max<std::size_t>(type.size, 1), 1) : 1;
  reducer_ = {.apply = apply, .kernel = nullptr, .many = nullptr, .context = this, .element_bytes = type.size};
  alignment_ = std::min(host_alignment, std::size_t{1} << std::countr_zero(std::max<std::size_t>(type.size, 1)));
  operand_bytes_ = padded_to_line(type.contiguous ? piece_ * type.size : line_bytes + span_bytes(piece_));
}

void UserOperator::make_room() const { operands_.reserve(2 * operand_bytes_); }

// A longer operand may begin with any element of a vector, as on the host, which cuts vectors into segments, too.
bool UserOperator::is_aligned(const std::byte* operand, std::size_t bytes) const {
  const std::size_t wanted = bytes <= always_aligned_bytes ? host_alignment : alignment_;
  return reinterpret_cast<std::uintptr_t>(operand) % wanted == 0;
}

std::size_t UserOperator::span_bytes(std::size_t count) const {
  const std::ptrdiff_t stride = std::max<std::ptrdiff_t>(type_->extent, 0);
  return type_->true_extent + (count - 1) * static_cast<std::size_t>(stride);
}

void UserOperator::apply(const Reducer& self, void* result, const void* left, const void* right, std::size_t count) {
  const auto& reduction = *static_cast<const UserOperator*>(self.context);
  const std::size_t element = self.element_bytes;
  for (std::size_t done = 0; done < count; done += reduction.piece_) {
    const std::size_t now = std::min(reduction.piece_, count - done);
    auto* to = static_cast<std::byte*>(result) + done * element;
    const auto* a = static_cast<const std::byte*>(left) + done * element;
    const auto* b = static_cast<const std::byte*>(right) + done * element;
    if (reduction.type_->contiguous)
      reduction.combine(to, a, b, now);
    else
      reduction.combine_packed(to, a, b, now);
  }
}

// The caller combines into the right operand, so that a result elsewhere starts as a copy of it; a result over the left
// operand, or at no address for an operand, is made aside.
void UserOperator::combine(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const {
  const std::size_t bytes = count * type_->size;
  std::byte* aside = operands_.data();
  std::byte* into = result == left || !is_aligned(result, bytes) ? aside : result;
  if (into != right) std::memcpy(into, right, bytes);
  const std::byte* from = left;
  if (!is_aligned(left, bytes)) from = static_cast<std::byte*>(std::memcpy(aside + operand_bytes_, left, bytes));
  note(caller().combine(op_, from, into, count, *type_));
  if (into != result) std::memcpy(result, into, bytes);
}

void UserOperator::combine_packed(std::byte* result, const std::byte* left, const std::byte* right,
                                  std::size_t count) const {
  std::byte* a = operands_.data() - line_below(type_->true_lower_bound);
  std::byte* b = a + operand_bytes_;
  note(unpack_elements(a, count, *type_, left));
  note(unpack_elements(b, count, *type_, right));
  note(caller().combine(op_, a, b, count, *type_));
  note(pack_elements(b, count, *type_, result));
}

}  // namespace plait::runtime
