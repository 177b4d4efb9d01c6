// What is asked of whoever knows the types of calls: figures, and what they were made of.
#pragma once

#include <span>

#include "core/reduction.h"
#include "runtime/layer.h"
#include "runtime/types/construction.h"
#include "runtime/types/layout.h"

namespace plait::runtime {

// Of a type, without a look into it: `contiguous` and `gapless` need not be known.
struct TypeFacts : Layout {
  bool predefined = false;  // it comes with the caller. False as well where that has not been looked for
  // By Op, of a predefined type: how one of core's operators combines its elements. No `apply` where the kernel is
  // missing or where the host refuses the combination: then the host gets the call, and raises the error if there is
  // one.
  const Reducer* reducers = nullptr;
};

// Thread-safe. May throw std::bad_alloc.
class TypeReader {
 public:
  virtual TypeFacts facts(TypeHandle type) const = 0;
  // `made` is empty before. The handles of its parts are to be released.
  virtual void read(TypeHandle type, Construction& made) const = 0;
  virtual void release(TypeHandle part) const = 0;

 protected:
  ~TypeReader() = default;
};

// A construction, as long as it is looked at.
class ReadConstruction {
 public:
  ReadConstruction(TypeHandle type, const TypeReader& reader) : reader_(reader) { reader.read(type, made_); }
  ~ReadConstruction() {
    for (const TypeHandle part : parts()) reader_.release(part);
  }
  ReadConstruction(const ReadConstruction&) = delete;
  ReadConstruction& operator=(const ReadConstruction&) = delete;

  Combiner combiner() const { return made_.combiner; }
  Numbers numbers() const { return made_.numbers.values(); }
  Blocks blocks() const { return blocks_of(combiner(), numbers()); }
  std::span<const TypeHandle> parts() const { return made_.parts.values(); }

 private:
  const TypeReader& reader_;
  Construction made_;
};

}  // namespace plait::runtime
