// Three tips for a first game, each shown when it is relevant. One click turns them off permanently.

import { $ } from "./page.js";

const MEMORY = "dubito tips";

const TIPS = {
  open: () => "You open the round. Play one to three cards face down and say a number. Nobody sees whether it is true.",
  doubt: ({ claim, who }) =>
    `${who} says ${claim}. Do you believe it? If you doubt and it is a lie, ${who} takes the pile. If not, you do.`,
  bluff: () => "This would be a bluff. It costs nothing until somebody doubts it: then you take the whole pile.",
};

const seen = () => new Set((localStorage.getItem(MEMORY) || "").split(" ").filter(Boolean));

function turnOff() {
  localStorage.setItem(MEMORY, Object.keys(TIPS).join(" "));
  $("tip").hidden = true;
}

// Shows a tip once. Any other moment hides it.
export function tip(moment, about = {}) {
  const known = seen();
  if (!moment || (known.has(moment) && $("tip").dataset.moment !== moment)) {
    $("tip").hidden = true;
    delete $("tip").dataset.moment;
    return;
  }
  $("tip").querySelector("span").textContent = TIPS[moment](about);
  $("tip").dataset.moment = moment;
  $("tip").hidden = false;
  localStorage.setItem(MEMORY, [...known, moment].join(" "));
}

$("tip").querySelector("button").addEventListener("click", turnOff);
