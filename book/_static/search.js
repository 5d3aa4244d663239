// What a search shows of a page: sentences, not code, outputs and labels, and the
// sections in which they stand.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const NOISE = "svg, style, script, summary, pre, .cell_output, .headerlink";
  const SHOWN = 3;
  const whole = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const root = (anchor && page.querySelector(`[role="main"] ${anchor}`)) || page;
    root.querySelectorAll(`${NOISE}, section section`).forEach((part) => {
      if (anchor || !part.matches("section")) part.remove();
    });
    const text = whole(page.documentElement.outerHTML, anchor);
    return text.replace(/\s+/g, " ").trim();
  };

  const sectionsWith = (html, keywords) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll(NOISE).forEach((part) => part.remove());
    const found = [];
    page.querySelectorAll('[role="main"] section section[id]').forEach((section) => {
      const parts = [...section.children].filter((part) => !part.matches("section"));
      const [title, ...texts] = parts.map((part) => part.textContent.trim());
      const sentences = texts.join(" ").replace(/\s+/g, " ").split(/(?<=[.?!:]) /);
      const count = (text) =>
        [...keywords].filter((word) => text.toLowerCase().includes(word)).length;
      const counts = sentences.map(count);
      const best = Math.max(...counts, 0);
      const hits = Math.max(count(title), best);
      const sentence = sentences[best ? counts.indexOf(best) : 0];
      if (hits) found.push({ id: section.id, title, sentence, hits });
    });
    return found.sort((a, b) => b.hits - a.hits).slice(0, SHOWN);
  };

  const summary = Search.makeSearchSummary;
  Search.makeSearchSummary = (html, keywords, anchor) => {
    const name = html.match(/DOCUMENTATION_OPTIONS\.pagename = '([^']+)'/);
    const found = anchor || !name ? [] : sectionsWith(html, keywords);
    if (!found.length) return summary(html, keywords, anchor) || document.createElement("p");
    const list = document.createElement("ul");
    list.className = "sections";
    found.forEach(({ id, title, sentence }) => {
      const link = document.createElement("a");
      link.href = `${name[1]}.html#${id}`;
      link.textContent = title;
      const text = document.createElement("p");
      text.className = "context";
      text.textContent = sentence.length < 300 ? sentence : `${sentence.slice(0, 299)}…`;
      const item = document.createElement("li");
      item.append(link, text);
      list.append(item);
    });
    return list;
  };
});
