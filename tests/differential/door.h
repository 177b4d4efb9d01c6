// Plait's own functions, where its library was loaded into this process.
#pragma once

namespace plait::test {

// Whether the library is there. Without it the two functions below do nothing, and say "".
bool plait_present();
void enable_plait(bool enabled);
const char* last_plan();
const char* last_channels();

}  // namespace plait::test
