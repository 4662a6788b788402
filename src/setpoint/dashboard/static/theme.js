// Runs before the first paint: a theme that was chosen is not preceded by a flash of the other one.
try {
  const theme = localStorage.getItem("setpoint.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is blocked: the theme of the system applies.
}
