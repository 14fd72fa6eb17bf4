// Requests a table with the chosen settings and remembers them for the next game.

import { $, ask } from "./table.js";

const form = $("lobby");
const bots = [...form.querySelectorAll("[name=bot]")];
const game = form.dataset.game;
const rules = [...form.querySelectorAll("[data-rule]")];
const MEMORY = game === "dubito" ? "dubito lobby" : `dubito lobby ${game}`;

function fit() {
  const size = Number(form.size.value);
  bots.forEach((bot, place) => { bot.parentElement.hidden = place >= size - 1; });
  [...$("seat").options].forEach((option) => { option.hidden = option.disabled = option.value !== "" && Number(option.value) >= size; });
  if ($("seat").selectedOptions[0]?.disabled) $("seat").value = "";
}

// Shows the person's record against the chosen bot.
function fared(bot) {
  bot.parentElement.querySelector(".fared").textContent = bot.selectedOptions[0]?.dataset.fared || "";
}

function remembered() {
  try {
    for (const [index, value] of JSON.parse(localStorage.getItem(MEMORY) || "[]").entries()) {
      const field = form.querySelectorAll("select")[index];
      if (field && [...field.options].some((option) => option.value === value)) field.value = value;
    }
  } catch {
    localStorage.removeItem(MEMORY);
  }
}

async function deal(event) {
  event.preventDefault();
  if (form.dataset.goesOn === "yes" && !confirm("This abandons your current game. Deal new cards?")) return;
  const number = (text) => (text === "" ? null : Number(text));
  $("error").textContent = "";
  localStorage.setItem(MEMORY, JSON.stringify([...form.querySelectorAll("select")].map((field) => field.value)));
  try {
    await ask("/api/table", {
      bots: bots.slice(0, Number(form.size.value) - 1).map((bot) => bot.value),
      game,
      rules: Object.fromEntries(rules.map((field) => [field.name, JSON.parse(field.selectedOptions[0].dataset.value)])),
      seat: number(form.seat.value),
      seed: number(form.seed.value.trim()),
    });
    location.href = "/table#new";
  } catch (error) {
    $("error").textContent = error.message;
  }
}

remembered();
fit();
for (const bot of bots) {
  bot.addEventListener("change", () => fared(bot));
  fared(bot);
}
for (const now of document.querySelectorAll("[data-bots]")) {
  now.addEventListener("click", () => {
    const names = now.dataset.bots.split(" ");
    bots.forEach((bot, place) => { bot.value = names[place % names.length]; });
    form.requestSubmit();
  });
}
$("game")?.addEventListener("change", () => $("game").form.submit());
$("size").addEventListener("change", fit);
form.addEventListener("submit", deal);
