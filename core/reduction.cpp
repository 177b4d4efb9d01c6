#include "core/reduction.h"

#include "core/kernels.h"

namespace plait {
namespace {

void apply_kernel(const Reducer& self, void* result, const void* left, const void* right, std::size_t count) {
  self.kernel(result, left, right, count);
}

// Whatever the operator: floating-point sums and products round, and of two equal values, zeros of either sign, any may
// be the largest.
bool is_exact(Element element) {
  switch (element) {
    case Element::i8:
    case Element::i16:
    case Element::i32:
    case Element::i64:
    case Element::u8:
    case Element::u16:
    case Element::u32:
    case Element::u64:
    case Element::bool8:
    case Element::logical8:
    case Element::logical16:
    case Element::logical32:
    case Element::logical64:
    case Element::byte8:
    case Element::pair_i64_i32:
    case Element::pair_i32_i32:
    case Element::pair_i16_i32:
      return true;
    default:
      return false;
  }
}

}  // namespace

ReduceKernel reduce_kernel(Op op, Element element) { return detail::kernel_table().at(op, element); }

Reducer make_reducer(Op op, Element element) {
  const ReduceKernel kernel = reduce_kernel(op, element);
  return {.apply = kernel == nullptr ? nullptr : apply_kernel,
          .kernel = kernel,
          .many = detail::many_kernels().at(op, element),
          .context = nullptr,
          .element_bytes = extent(element),
          .exact = is_exact(element),
          .op = op,
          .element = element};
}

}  // namespace plait
