// Runs before anything is painted, so that a chosen theme does not flash in the other one.
try {
  const theme = JSON.parse(localStorage.getItem("headwise.theme"));
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is switched off: the reader's system decides.
}
