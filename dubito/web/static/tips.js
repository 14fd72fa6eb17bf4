// A game's tips for a first game, each shown when it is relevant. One click turns them off permanently.

import { $ } from "./page.js";

const MEMORY = "dubito tips";
const OFF = "off";

const seen = () => new Set((localStorage.getItem(MEMORY) || "").split(" ").filter(Boolean));

function turnOff() {
  localStorage.setItem(MEMORY, OFF);
  $("tip").hidden = true;
}

// Shows a tip once. Any other moment hides it.
export function tip(moment, text = "") {
  const known = seen();
  if (!moment || known.has(OFF) || (known.has(moment) && $("tip").dataset.moment !== moment)) {
    $("tip").hidden = true;
    delete $("tip").dataset.moment;
    return;
  }
  $("tip").querySelector("span").textContent = text;
  $("tip").dataset.moment = moment;
  $("tip").hidden = false;
  localStorage.setItem(MEMORY, [...known, moment].join(" "));
}

$("tip").querySelector("button").addEventListener("click", turnOff);
