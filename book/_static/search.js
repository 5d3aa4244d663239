// What a search shows of a page: its sentences, not code, outputs and labels.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const whole = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const noise = "svg, style, summary, pre, .cell_output, .headerlink, section section";
    const root = (anchor && page.querySelector(`[role="main"] ${anchor}`)) || page;
    root.querySelectorAll(noise).forEach((part) => {
      if (anchor || !part.matches("section")) part.remove();
    });
    const text = whole(page.documentElement.outerHTML, anchor);
    return text.replace(/\s+/g, " ").trim();
  };
});
