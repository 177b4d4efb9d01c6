#include "tests/preload/layouts.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace road {
namespace {

constexpr std::byte untouched{0xA5};
constexpr std::size_t margin = 64;

void free_type(const MPI_Datatype* type) {
  MPI_Datatype handle = *type;
  MPI_Type_free(&handle);
  delete type;
}

std::shared_ptr<MPI_Datatype> owned(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return {new MPI_Datatype(type), free_type};
}

std::shared_ptr<MPI_Datatype> borrowed(MPI_Datatype type) { return std::make_shared<MPI_Datatype>(type); }

struct Order {
  MPI_Datatype basic;
  std::ptrdiff_t bytes;  // of the basic type
  int elements;          // at least 1
};

Made make_contiguous(const Order& order) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(order.elements, order.basic, &type);
  std::vector<std::ptrdiff_t> offsets;
  for (int i = 0; i < order.elements; ++i) offsets.push_back(i * order.bytes);
  return {type, offsets, order.elements * order.bytes};
}

Made make_vector(const Order& order, int stride) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(order.elements, 1, stride, order.basic, &type);
  std::vector<std::ptrdiff_t> offsets;
  for (int i = 0; i < order.elements; ++i) offsets.push_back(i * stride * order.bytes);
  return {type, offsets, ((order.elements - 1) * stride + 1) * order.bytes};
}

// Gapless, but visited from the end: as long and as wide as the plain array, and in no way the same.
Made make_reversed(const Order& order) {
  std::vector<int> places(static_cast<std::size_t>(order.elements));
  for (int i = 0; i < order.elements; ++i) places[static_cast<std::size_t>(i)] = order.elements - 1 - i;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(order.elements, 1, places.data(), order.basic, &type);
  std::vector<std::ptrdiff_t> offsets;
  for (const int place : places) offsets.push_back(place * order.bytes);
  return {type, offsets, order.elements * order.bytes};
}

// Elements before the address, and room behind the last one.
Made make_shifted(const Order& order) {
  std::vector<MPI_Aint> places;
  for (int i = 0; i < order.elements; ++i) places.push_back((i - 2) * order.bytes);
  MPI_Datatype inner = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed_block(order.elements, 1, places.data(), order.basic, &inner);
  const std::ptrdiff_t extent = (order.elements + 3) * order.bytes;
  MPI_Type_create_resized(inner, -2 * order.bytes, extent, &type);
  MPI_Type_free(&inner);
  return {type, {places.begin(), places.end()}, extent};
}

// Columns of a matrix: `units` inner datatypes whose elements lie between each other's, in one outer one.
Made make_interleaved(const Order& order, int units) {
  MPI_Datatype strided = MPI_DATATYPE_NULL, column = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  MPI_Type_vector(order.elements, 1, units, order.basic, &strided);
  MPI_Type_create_resized(strided, 0, order.bytes, &column);
  MPI_Datatype columns = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(units, column, &columns);
  const std::ptrdiff_t extent = order.elements * units * order.bytes;
  MPI_Type_create_resized(columns, 0, extent, &type);
  for (MPI_Datatype* inner : {&strided, &column, &columns}) MPI_Type_free(inner);
  std::vector<std::ptrdiff_t> offsets;
  for (int unit = 0; unit < units; ++unit)
    for (int i = 0; i < order.elements; ++i) offsets.push_back((i * units + unit) * order.bytes);
  return {type, offsets, extent};
}

Made make_struct(const Order& order) {
  const int first = order.elements / 2;
  const int lengths[] = {first, order.elements - first};
  const MPI_Aint places[] = {0, (first + 1) * order.bytes};
  const MPI_Datatype types[] = {order.basic, order.basic};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, places, types, &type);
  std::vector<std::ptrdiff_t> offsets;
  for (int i = 0; i < order.elements; ++i) offsets.push_back((i < first ? i : i + 1) * order.bytes);
  return {type, offsets, (order.elements + 1) * order.bytes};
}

Made make(Random& random, const Order& order) {
  switch (random.below(6)) {
    case 0:
      return make_contiguous(order);
    case 1:
      return make_vector(order, 1);  // contiguous by another name
    case 2:
      return make_vector(order, 2 + static_cast<int>(random.below(3)));
    case 3:
      return make_reversed(order);
    case 4:
      return make_shifted(order);
    // MPI's extent ends with the last element: a struct of one element has no gap before it.
    default:
      return order.elements > 1 ? make_struct(order) : make_contiguous(order);
  }
}

std::size_t bytes_of(MPI_Datatype basic) {
  int bytes = 0;
  MPI_Type_size(basic, &bytes);
  return static_cast<std::size_t>(bytes);
}

}  // namespace

Layout Layout::of(MPI_Datatype type, MPI_Datatype basic, std::vector<std::ptrdiff_t> offsets, std::ptrdiff_t extent) {
  Layout layout;
  layout.basic_ = basic;
  layout.basic_bytes_ = bytes_of(basic);
  layout.type_ = borrowed(type);
  layout.extent_ = extent;
  layout.offsets_ = std::move(offsets);
  return layout;
}

Layout Layout::owning(Made made, MPI_Datatype basic) {
  Layout layout = of(made.type, basic, std::move(made.offsets), made.extent);
  layout.type_ = owned(made.type);
  layout.replaceable_ = true;
  return layout;
}

Layout Layout::draw_unit(Random& random, MPI_Datatype basic, std::size_t elements) {
  const auto bytes = static_cast<std::ptrdiff_t>(bytes_of(basic));
  if (elements == 1 && random.below(2) == 0) return of(basic, basic, {0}, bytes);
  return owning(make(random, {basic, bytes, static_cast<int>(elements)}), basic);
}

Layout Layout::draw(Random& random, MPI_Datatype basic, std::size_t elements) {
  const auto bytes = static_cast<std::ptrdiff_t>(bytes_of(basic));
  if (elements == 0 || random.below(3) == 0) {
    Layout layout = of(basic, basic, {0}, bytes);
    layout.count_ = static_cast<int>(elements);
    return layout;
  }
  std::size_t units = 1 + random.below(std::min<std::size_t>(elements, 6));
  while (elements % units != 0) --units;
  const int unit = static_cast<int>(elements / units);
  if (random.below(8) == 0) return owning(make_interleaved({basic, bytes, unit}, static_cast<int>(units)), basic);
  Layout layout = draw_unit(random, basic, elements / units);
  layout.count_ = static_cast<int>(units);
  return layout;
}

Side::Side(Layout layout, std::size_t segments, Random& random)
    : layout_(std::move(layout)), elements_(segments * layout_.elements()) {
  std::ptrdiff_t lowest = 0, highest = 0;
  for (std::size_t element = 0; element < elements_; ++element) {
    lowest = std::min(lowest, layout_.offset(element));
    highest = std::max(highest, layout_.offset(element) + static_cast<std::ptrdiff_t>(layout_.basic_bytes()));
  }
  memory_.assign(static_cast<std::size_t>(highest - lowest) + 2 * margin, untouched);
  origin_ = memory_.data() + margin - lowest;
  if (elements_ > 0 && layout_.replaceable() && random.below(6) == 0) use_bottom();
}

// The same elements at their addresses; the extent stays, so that segments follow each other as before.
void Side::use_bottom() {
  MPI_Aint address = 0;
  MPI_Get_address(origin_, &address);
  const int length = 1;
  const MPI_Datatype type = layout_.type();
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(type, &lower_bound, &extent);
  MPI_Datatype placed = MPI_DATATYPE_NULL, resized = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(1, &length, &address, type, &placed);
  MPI_Type_create_resized(placed, address + lower_bound, extent, &resized);
  MPI_Type_free(&placed);
  absolute_ = owned(resized);
  at_bottom_ = true;
}

std::uint64_t Side::get(std::size_t element) const {
  const std::byte* from = place(element);
  const auto read = [from]<class T>(T value) {
    std::memcpy(&value, from, sizeof value);
    return static_cast<std::uint64_t>(value);
  };
  if (layout_.basic() == MPI_DOUBLE) return read(double{});
  if (layout_.basic() == MPI_FLOAT) return read(float{});
  switch (layout_.basic_bytes()) {
    case 1:
      return read(std::uint8_t{});
    case 2:
      return read(std::uint16_t{});
    case 4:
      return read(std::uint32_t{});
    default:
      return read(std::uint64_t{});
  }
}

void Side::set(std::size_t element, std::uint64_t number) {
  std::byte* to = place(element);
  const auto write = [to, number]<class T>(T value) {
    value = static_cast<T>(number);
    std::memcpy(to, &value, sizeof value);
  };
  if (layout_.basic() == MPI_DOUBLE) return write(double{});
  if (layout_.basic() == MPI_FLOAT) return write(float{});
  switch (layout_.basic_bytes()) {
    case 1:
      return write(std::uint8_t{});
    case 2:
      return write(std::uint16_t{});
    case 4:
      return write(std::uint32_t{});
    default:
      return write(std::uint64_t{});
  }
}

bool Side::gaps_untouched() const {
  std::vector<bool> used(memory_.size());
  for (std::size_t element = 0; element < elements_; ++element) {
    const std::ptrdiff_t first = place(element) - memory_.data();
    for (std::size_t i = 0; i < layout_.basic_bytes(); ++i) used[static_cast<std::size_t>(first) + i] = true;
  }
  for (std::size_t i = 0; i < memory_.size(); ++i)
    if (!used[i] && memory_[i] != untouched) return false;
  return true;
}

std::vector<int> draw_displacements(Random& random, const std::vector<int>& counts) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool shuffled = random.below(2) == 0, gaps = random.below(2) == 0;
  for (std::size_t i = order.size(); shuffled && i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<int> displacements(counts.size());
  int next = gaps ? static_cast<int>(random.below(5)) : 0;
  for (const std::size_t rank : order) {
    displacements[rank] = counts[rank] > 0 ? next : static_cast<int>(random.below(100));
    next += counts[rank] + (gaps ? static_cast<int>(random.below(5)) : 0);
  }
  return displacements;
}

std::size_t end_of(const std::vector<int>& counts, const std::vector<int>& displacements) {
  int end = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    if (counts[rank] > 0) end = std::max(end, displacements[rank] + counts[rank]);
  return static_cast<std::size_t>(end);
}

}  // namespace road
