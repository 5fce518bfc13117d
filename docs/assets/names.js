// Names and keyboard access for what the theme's script and site.css add to a page.
const improve = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach(nav => {
    const block = nav.closest("[id^=__code_]").id.replace("__code_", "");
    nav.setAttribute("aria-label", `Code block ${Number(block) + 1}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap, .tabbed-labels, p:has(> img[src*='bench/'])").forEach(box => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
};
new MutationObserver(improve).observe(document.body, {childList: true, subtree: true});
addEventListener("resize", improve);
addEventListener("load", improve);
improve();
