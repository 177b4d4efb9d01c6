#include "plugin/reduction.h"

#include <algorithm>
#include <cstring>

#include "plugin/layout.h"

namespace plait::plugin {
namespace {

constexpr std::size_t piece_bytes = 32 * 1024;  // both operands of a piece stay in the first-level caches
constexpr std::size_t alignment = alignof(std::max_align_t);

std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

void UserReduction::start(MPI_Op op, const Datatype& type, std::vector<std::byte>& operands) {
  op_ = op;
  type_ = &type;
  operands_ = &operands;
  // Elements that run backwards in memory are taken one by one.
  piece_ = type.extent > 0 ? std::max<std::size_t>(piece_bytes / std::max<std::size_t>(type.size, 1), 1) : 1;
  reducer_ = {.apply = apply, .kernel = nullptr, .many = nullptr, .context = this, .element_bytes = type.size};
  const std::size_t needed = type.contiguous ? piece_ * type.size : 2 * aligned(span_bytes(piece_));
  if (operands.size() < needed) operands.resize(needed);
}

std::size_t UserReduction::span_bytes(std::size_t count) const {
  const std::ptrdiff_t stride = std::max<std::ptrdiff_t>(type_->extent, 0);
  return type_->true_extent + (count - 1) * static_cast<std::size_t>(stride);
}

void UserReduction::apply(const Reducer& self, void* result, const void* left, const void* right, std::size_t count) {
  const auto& reduction = *static_cast<const UserReduction*>(self.context);
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

// MPI combines into the right operand, so that a result elsewhere starts as a copy of it, and a result over the left
// operand is made aside.
void UserReduction::combine(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const {
  const std::size_t bytes = count * type_->size;
  std::byte* into = result == left ? operands_->data() : result;
  if (into != right) std::memcpy(into, right, bytes);
  note(PMPI_Reduce_local(left, into, static_cast<int>(count), type_->handle, op_));
  if (into != result) std::memcpy(result, into, bytes);
}

void UserReduction::combine_packed(std::byte* result, const std::byte* left, const std::byte* right,
                                   std::size_t count) const {
  std::byte* a = operands_->data() - type_->true_lower_bound;
  std::byte* b = a + aligned(span_bytes(piece_));
  note(unpack_elements(a, count, *type_, left));
  note(unpack_elements(b, count, *type_, right));
  note(PMPI_Reduce_local(a, b, static_cast<int>(count), type_->handle, op_));
  note(pack_elements(b, count, *type_, result));
}

}  // namespace plait::plugin
