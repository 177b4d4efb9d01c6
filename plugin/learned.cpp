#include "plugin/learned.h"

namespace plait {
void keep_lesson(const std::string&, const Lesson&) {}
std::vector<Lesson> earlier_lessons(const std::string&) { return {}; }
bool has_earlier_lessons() { return false; }
}  // namespace plait
