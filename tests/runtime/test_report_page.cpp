// The report as text and as a page.
#include <gtest/gtest.h>

#include <regex>

#include "runtime/report/report_content.h"

namespace plait::runtime {
namespace {

ReportContent hostile() {
  ReportContent content;
  content.ranks = 8;
  content.version = "1.0";
  content.rows = {{"allreduce", 8, "1 B - 8 B", 10, 80, 0.5, "RS.2 <&> \"AR\"", "mpi,shm", ""},
                  {"bcast", 4, "-", 3, 0, 0.25, "host", "", "because <script>alert('x')</script>"}};
  content.total = {13, 80, 10, 0.75};
  content.rails = {{"mlx5_0 <b>", 3 << 20}, {"mlx5_1", 0}};
  content.facts = {"MPI: Open MPI <v4> & others"};
  content.advice = {"mapping: <i>do</i> this"};
  return content;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(ReportPage, EscapesAllTexts) {
  const std::string page = report_page(hostile());
  for (const char* words :
       {"RS.2 &lt;&amp;&gt; &quot;AR&quot;", "because &lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;",
        "mlx5_0 &lt;b&gt;", "Open MPI &lt;v4&gt; &amp; others", "&lt;i&gt;do&lt;/i&gt;"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
}

TEST(ReportPage, NeedsNothingElse) {
  const std::string page = report_page(hostile());
  for (const char* resource : {"src=", "href=", "url(", "@import", "http"})
    EXPECT_EQ(page.find(resource), std::string::npos) << resource;
}

TEST(ReportPage, HasAllRowsAndTheTotal) {
  const std::string page = report_page(hostile());
  const std::string calls = page.substr(page.find("<h2>All calls"));
  EXPECT_EQ(count(calls.substr(0, calls.find("</table>")), "<tr>"), 3u);  // heading and two rows; the total has a class
  for (const char* words : {"<td class=\"n\">0.500000</td>", "<td class=\"n\">1 B - 8 B</td>", "10 accelerated",
                            "<h2>Bytes by rail", "<h2>Left to the host", "8 ranks; 10 of 13 calls accelerated"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  // The longest bar is as wide as its place, the other half of it.
  EXPECT_NE(page.find("class=\"plait\" style=\"width:100.00%\""), std::string::npos);
  EXPECT_NE(page.find("class=\"host\" style=\"width:50.00%\""), std::string::npos);
}

TEST(ReportPage, EveryElementIsClosed) {
  for (const ReportContent& content : {hostile(), ReportContent()}) {
    const std::string page = report_page(content);
    for (const char* name : {"table", "thead", "tbody", "tr", "td", "th", "div", "ul", "li", "p", "i", "h2", "style"})
      EXPECT_EQ(count(page, "<" + std::string(name) + ">") + count(page, "<" + std::string(name) + " "),
                count(page, "</" + std::string(name) + ">"))
          << name;
    EXPECT_EQ(page.find("width:nan"), std::string::npos);
  }
}

TEST(ReportPage, LeavesOutWhatThereIsNot) {
  const std::string page = report_page({});
  for (const char* words : {"Bytes by rail", "Left to the host", "Advice", "Facts"})
    EXPECT_EQ(page.find(words), std::string::npos) << words;
}

TEST(ReportText, HasRowsFactsAndAdvice) {
  const std::string text = report_text(hostile());
  EXPECT_TRUE(std::regex_search(text, std::regex("plait: allreduce +8  1 B - 8 B +10 +80 B  0.500000  RS.2 <&> \"AR\" "
                                                 "over mpi,shm\n")))
      << text;
  EXPECT_NE(text.find("10 accelerated\nplait: MPI: Open MPI <v4> & others\nplait: mapping: <i>do</i> this\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace plait::runtime
