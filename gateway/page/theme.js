// The theme is set before anything is shown, so this is no module. Without a
// choice the page is as the system is.
{
  const root = document.documentElement;
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen) root.dataset.theme = chosen;
  } catch {
    // The browser lets pages keep nothing.
  }

  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("#theme")) return;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // The choice lasts as long as the page.
    }
  });
}
