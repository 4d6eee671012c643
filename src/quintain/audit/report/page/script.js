"use strict";
for (const code of document.querySelectorAll(".replay code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy the command");
  button.addEventListener("click", () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  code.parentElement.append(button);
}
const root = document.documentElement;
const toggle = document.createElement("button");
const dark = () => root.dataset.theme
  ? root.dataset.theme === "dark"
  : window.matchMedia("(prefers-color-scheme: dark)").matches;
const name = () => { toggle.textContent = dark() ? "Light" : "Dark"; };
toggle.type = "button";
toggle.id = "theme";
toggle.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
name();
document.querySelector("header").append(toggle);
