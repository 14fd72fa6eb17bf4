// The lobby: one click starts a game. The form below it chooses opponents and rules, and remembers them.

import { $, ask, make } from "./page.js";

const start = $("start");
const form = $("lobby");
const bots = [...form.querySelectorAll("[name=bot]")];
const { game } = form.dataset;
const rules = [...form.querySelectorAll("[data-rule]")];
const MEMORY = `dubito lobby ${game}`;
const YEAR = 365 * 24 * 3600;
const SPOTS = [["19%", "42%"], ["50%", "16%"], ["81%", "42%"]]; // positions of the three opponents in the picture
const CLAIM = "three 2s!";

// Deals a game and opens its table. An unfinished game is only abandoned if the person agrees.
async function deal(table, complaint, address = "api/table", page = "table#new") {
  if (form.dataset.goesOn === "yes" && !confirm("This abandons your current game. Deal new cards?")) return;
  document.cookie = `dubito-name=${
    encodeURIComponent(start.elements.name.value.trim())
  }; path=/; max-age=${YEAR}; samesite=strict`;
  complaint.textContent = "";
  try {
    await ask(address, table);
    location.href = page;
  } catch (error) {
    complaint.textContent = error.message;
  }
}

// --- One click ---

const level = () => start.elements.level?.value ?? Object.keys(JSON.parse(start.dataset.levels))[0];

function begin({ game: name, levels }) {
  const known = JSON.parse(levels);
  return deal({ game: name, bots: known[level()] ?? Object.values(known).at(-1) }, $("refused"));
}

start.addEventListener("submit", (event) => {
  event.preventDefault();
  begin(start.dataset);
});
for (const button of document.querySelectorAll(".game button")) {
  button.addEventListener("click", () => begin(button.dataset));
}

// --- Pictures ---

function drawScene() {
  const faces = JSON.parse($("scene").dataset.faces).map((one) => window.dubitoCards.face(one));
  const rivals = (JSON.parse(start.dataset.levels)[level()] ?? []).slice(0, SPOTS.length).map((name, place, all) => {
    const seat = make("div", "seat", window.dubitoAvatar(name, "hand-written"), name);
    const [x, y] = all.length === 1 ? SPOTS[1] : SPOTS[place];
    seat.style.setProperty("--x", x);
    seat.style.setProperty("--y", y);
    if (place === 1 && game === "dubito") seat.append(make("p", "bubble", CLAIM));
    return seat;
  });
  const hand = make("ul", "hand");
  window.dubitoCards.fan(hand, faces);
  $("scene").replaceChildren(...rivals, hand);
}

for (const picture of document.querySelectorAll(".picture")) {
  const list = make("ul");
  window.dubitoCards.fan(list, JSON.parse(picture.dataset.faces).map((one) => window.dubitoCards.face(one)));
  picture.append(list);
}
start.addEventListener("change", drawScene);
drawScene();

// --- A deal from a link ---

const invitation = new URLSearchParams(location.search);
// A revealed seed of a run is text, since a number would lose digits.
const parseSeed = (text) => (/^[0-9a-f]{32}$/.test(text) ? text : Number(text));
if (invitation.has("seed") && invitation.has("bots")) {
  const table = {
    game,
    bots: invitation.get("bots").split(" "),
    seed: parseSeed(invitation.get("seed")),
    deal: Number(invitation.get("deal") ?? 0),
    seat: Number(invitation.get("seat") ?? 0),
    rules: JSON.parse(invitation.get("rules") || "{}"),
  };
  $("against").textContent = `You play against ${table.bots.join(", ")}.`;
  $("invited").hidden = false;
  $("accept").addEventListener("click", () => deal(table, $("against")));
  $("accept").focus();
}

$("play-on")?.addEventListener("click", () => deal({}, $("at-turn"), "api/moment", "table"));

// --- The form ---

function fit() {
  const size = Number(form.size.value);
  bots.forEach((bot, place) => {
    bot.parentElement.hidden = place >= size - 1;
  });
  for (const option of $("seat").options) {
    option.hidden = option.disabled = option.value !== "" && Number(option.value) >= size;
  }
  if ($("seat").selectedOptions[0]?.disabled) $("seat").value = "";
}

// Shows the person's record against the chosen bot.
function showRecord(bot) {
  bot.parentElement.querySelector(".fared").textContent = bot.selectedOptions[0]?.dataset.fared || "";
}

function recall() {
  try {
    for (const [index, value] of JSON.parse(localStorage.getItem(MEMORY) || "[]").entries()) {
      const field = form.querySelectorAll("select")[index];
      if (field && [...field.options].some((option) => option.value === value)) field.value = value;
    }
  } catch {
    localStorage.removeItem(MEMORY);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const number = (text) => (text === "" ? null : Number(text));
  localStorage.setItem(MEMORY, JSON.stringify([...form.querySelectorAll("select")].map((field) => field.value)));
  const table = {
    bots: bots.slice(0, Number(form.size.value) - 1).map((bot) => bot.value),
    game,
    rules: Object.fromEntries(rules.map((field) => [field.name, JSON.parse(field.selectedOptions[0].dataset.value)])),
    seat: number(form.seat.value),
    seed: number(form.seed.value.trim()),
  };
  deal(table, $("error"));
});
recall();
fit();
for (const bot of bots) {
  bot.addEventListener("change", () => showRecord(bot));
  showRecord(bot);
}
$("size").addEventListener("change", fit);
const openForm = () => {
  if (location.hash === "#own-game") $("own-game").open = true;
};
window.addEventListener("hashchange", openForm);
openForm();
