#include <gtest/gtest.h>

#include "core/markup.h"

namespace plait {
namespace {

TEST(Markup, WritesReferences) {
  EXPECT_EQ(escape_markup("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escape_markup(""), "");
  EXPECT_EQ(escape_markup("line\nline\ttab"), "line\nline\ttab");
}

TEST(Markup, LeavesOtherCharacters) {
  for (const char* text : {"P\xc2\xb2", "\xe2\x80\x94", "\xf0\x9f\x98\x80", "\xef\xbf\xbd", "\xc2\x80"})
    EXPECT_EQ(escape_markup(text), text);
}

TEST(Markup, ReplacesWhatXmlDoesNotAllow) {
  EXPECT_EQ(escape_markup(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(escape_markup("\x01\x1b[1m"), "??[1m");
  EXPECT_EQ(escape_markup("\xff<\xc0\xaf"), "?&lt;??");  // never in UTF-8; a short form written long
  EXPECT_EQ(escape_markup("\xe2\x80"), "??");            // cut off
  EXPECT_EQ(escape_markup("\xc2<"), "?&lt;");            // what follows is no part of it
  EXPECT_EQ(escape_markup("\xed\xa0\x80"), "???");       // half of a surrogate pair
  EXPECT_EQ(escape_markup("\xef\xbf\xbf"), "???");
  EXPECT_EQ(escape_markup("\xf4\x90\x80\x80"), "????");  // above the last character
}

}  // namespace
}  // namespace plait
