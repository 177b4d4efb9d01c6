// The agreement of a job's ranks (runtime/job/agreement.h) by way of MPI_COMM_WORLD.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "plugin/layer.h"
#include "runtime/job/agreement.h"
#include "runtime/job/world.h"

namespace plait::plugin {

class MpiWorld : public World {
 public:
  int rank() const override;
  int ranks() const override;
  bool gather_all(const void* mine, std::size_t bytes, void* all) override;
  bool all_say_yes(bool mine, const std::function<void()>& waiting) override;
};

// What this MPI is. Throws where memory is short.
BindingFacts binding_facts();

class Agreement final : private MpiWorld, public runtime::Agreement {
 public:
  explicit Agreement(const Attendance* attendance) : runtime::Agreement(static_cast<MpiWorld&>(*this), attendance) {}
  void begin(const std::vector<std::string>& preferred) { runtime::Agreement::begin(binding_facts(), preferred); }
};

}  // namespace plait::plugin
