// Draws a player's face from the name, so that it never changes. People are round, bots square, models hexagons.
"use strict";
window.dubitoAvatar = (() => {
  const INK = "#20303a";
  const GOLD = "#f2b84b";
  const SKINS = ["#f4d3b3", "#e0ac7e", "#b67b4f", "#7d4f30"];
  const stroke = `fill="none" stroke="${INK}" stroke-width="2.6" stroke-linecap="round"`;
  const knob = (x, r) => `<circle cx="${x}" cy="8" r="${r}" fill="${GOLD}"/>`;
  const ANTENNAS = [
    `<path d="M32 8v9" ${stroke}/>${knob(32, 3.5)}`,
    `<path d="M25 17l-5-9M39 17l5-9" ${stroke}/>${knob(20, 3)}${knob(44, 3)}`,
    `<path d="M24 17q8-14 16 0z" fill="${GOLD}"/>`,
  ];
  const HAIR = [
    `<path d="M14 32c0-14 9-19 18-19s18 5 18 19c-5-3-6-9-9-11-7 5-19 3-27 11z" fill="#2e211b"/>`,
    `<path d="M15 30c-1-13 8-18 17-18s18 5 17 18c-8-2-12-8-17-8s-9 6-17 8z" fill="#7a3b1d"/>`,
  ];
  const EYES = [
    `<circle cx="25" cy="33" r="3.4"/><circle cx="39" cy="33" r="3.4"/>`,
    `<rect x="21" y="30" width="8" height="5" rx="2.5"/><rect x="35" y="30" width="8" height="5" rx="2.5"/>`,
    `<path d="M20 31q5-5 10 0M34 31q5-5 10 0" ${stroke}/>`,
    `<rect x="18" y="27" width="28" height="11" rx="5.5"/><g fill="#7fe0ff"><circle cx="26" cy="32.5" r="2.6"/><circle cx="38" cy="32.5" r="2.6"/></g>`,
    `<g fill="#fff"><circle cx="25" cy="32" r="5.5"/><circle cx="39" cy="32" r="5.5"/></g><circle cx="26.5" cy="33" r="2.6"/><circle cx="40.5" cy="33" r="2.6"/>`,
  ];
  const MOUTHS = ["M26 43q6 5 12 0", "M26 44h12", "M25 44q8 3 13-1", "M27 44q6 3 11-2"];

  // Returns a function that picks a number below a count. Its picks depend only on the name.
  function picker(name) {
    let hash = 2166136261;
    for (const letter of name) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619) >>> 0;
    return (count) => {
      hash = (Math.imul(hash, 1664525) + 1013904223) >>> 0;
      return Math.floor((hash / 2 ** 32) * count);
    };
  }

  function head(kind, skin, pick) {
    if (kind === "person") return `<circle cx="32" cy="34" r="17" fill="${skin}"/>${HAIR[pick(2)]}`;
    if (["model", "fake model"].includes(kind)) {
      return `<path d="M32 10l20 11.5v23L32 56 12 44.5v-23z" fill="${skin}"/>`;
    }
    return `${ANTENNAS[pick(3)]}<path d="M10 28v10m44-10v10" stroke="${skin}" stroke-width="5"/>
      <rect x="14" y="16" width="36" height="34" rx="${[6, 11, 17][pick(3)]}" fill="${skin}"/>`;
  }

  return (name, kind) => {
    const pick = picker(name);
    const hue = 20 * pick(18) + 10;
    const skin = kind === "person" ? SKINS[pick(4)] : `hsl(${hue} 45% 86%)`;
    const holder = document.createElement("template");
    holder.innerHTML = `<svg class="avatar" viewBox="0 0 64 64" aria-hidden="true">
      <rect width="64" height="64" fill="hsl(${hue} 48% 42%)"/>${head(kind, skin, pick)}
      <g fill="${INK}">${EYES[pick(kind === "person" ? 3 : 5)]}</g><path d="${MOUTHS[pick(4)]}" ${stroke}/></svg>`
      .replace(/\s*\n\s*/g, " ").replaceAll("> <", "><");
    return holder.content.firstChild;
  };
})();
// Writes a name that breaks between its words if it must. A long one is smaller, and whole in its tooltip.
window.dubitoName = (element, name) => {
  const LONGEST = 24; // characters in usual type
  const parts = name.split(/(?<=[-/:@_+])|(?<=[a-z])(?=[A-Z])/);
  element.replaceChildren(...parts.flatMap((part) => [document.createElement("wbr"), part]).slice(1));
  element.classList.toggle("long", name.length > LONGEST);
  element.title = name;
  return element;
};
for (const place of document.querySelectorAll(".face[data-name]")) {
  place.append(window.dubitoAvatar(place.dataset.name, place.dataset.kind));
}
for (const link of document.querySelectorAll(".scores .who a, tbody th a[href*='bots/']")) {
  window.dubitoName(link, link.textContent);
}
