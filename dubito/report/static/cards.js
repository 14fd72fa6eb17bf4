// Draws cards, dice and tools in reports and at the table. A game defines signs and icons.
"use strict";
window.dubitoCards = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const dot = (x, y) => `M${x - 2.3} ${y}a2.3 2.3 0 1 0 4.6 0a2.3 2.3 0 1 0-4.6 0z`;
  const die = (...pips) =>
    pips.map((pip) =>
      dot(
        ...{
          a: [5.5, 5.5],
          b: [18.5, 5.5],
          c: [5.5, 12],
          d: [12, 12],
          e: [18.5, 12],
          f: [5.5, 18.5],
          g: [18.5, 18.5],
        }[pip],
      )
    ).join("");
  // Icons by name, as paths in a box of 24 by 24. A game can use these names or its own paths.
  const ICONS = {
    spades:
      "M12 2C9 6 4 9 4 13.5a3.8 3.8 0 0 0 7 2.1C10.9 18 10 20 8.5 22h7C14 20 13.1 18 13 15.6a3.8 3.8 0 0 0 7-2.1C20 9 15 6 12 2z",
    hearts: "M12 21C6 16 3 12.5 3 8.6A4.6 4.6 0 0 1 12 7a4.6 4.6 0 0 1 9 1.6C21 12.5 18 16 12 21z",
    clubs:
      "M12 2a4.3 4.3 0 0 0-3.6 6.6A4.3 4.3 0 1 0 11 15.4C10.9 18 10 20 8.5 22h7C14 20 13.1 18 13 15.4a4.3 4.3 0 1 0 2.6-6.8A4.3 4.3 0 0 0 12 2z",
    diamonds: "M12 2l7.5 10L12 22 4.5 12z",
    pip: "M12 7a5 5 0 1 0 .1 0z", // on cards without a suit
    "die-1": die("d"),
    "die-2": die("a", "g"),
    "die-3": die("a", "d", "g"),
    "die-4": die("a", "b", "f", "g"),
    "die-5": die("a", "b", "d", "f", "g"),
    "die-6": die("a", "b", "c", "e", "f", "g"),
    bomb:
      "M9.5 8a7 7 0 1 0 .1 0zM13.6 8.2l2-2 2.2 2.2-2 2zM17.6 5.4c.6-1.6 2-2 3.4-1.4l-.6 1.6c-.7-.3-1.1-.1-1.4.5zM20 7l3 1.2-.6 1.4-3-1.2z",
    shield: "M12 2l8 3v6c0 5-3.4 9-8 11-4.6-2-8-6-8-11V5zM11 15.6l6-6L15.5 8 11 12.6l-2-2L7.5 12z",
    eye:
      "M12 5C6.5 5 3 9 1.5 12 3 15 6.5 19 12 19s9-4 10.5-7C21 9 17.5 5 12 5zM12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 10.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z",
    shuffle:
      "M2 6h5l6.4 8.4H16V12l6 3.7-6 3.7V17h-3.8L5.8 8.6H2zM2 14.4h3.8l1.8-2.3 1.6 2.1L7 17H2zM10.8 8.9L13 6h3V3.6l6 3.7-6 3.7V8.6h-1.7l-1.9 2.4z",
    skip: "M2 5l8 7-8 7zM10 5l8 7-8 7zM19 5h3v14h-3z",
    bottom: "M10.3 3h3.4v8H18l-6 7-6-7h4.3zM4 19.5h16V22H4z",
    blank: "M12 3a9 9 0 1 0 .1 0zM12 5.6a6.4 6.4 0 1 1-.1 0zM7 9.5h10v5H7zM8.5 11v2h7v-2z",
  };

  const SIGNS = ["★", "A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"];
  const SUITS = ["spades", "hearts", "clubs", "diamonds", "pip"];
  const LONGEST_SIGN = 12; // letters that fit on a card; longer names are tags
  // Positions of the pips on a card of 100 by 140, as on printed cards.
  const COLUMN = [[50, 36], [50, 104]];
  const FOUR = [[34, 36], [66, 36], [34, 104], [66, 104]];
  const SIX = [[34, 34], [66, 34], [34, 70], [66, 70], [34, 106], [66, 106]];
  const EIGHT = [[37, 31], [63, 31], [37, 57], [63, 57], [37, 83], [63, 83], [37, 109], [63, 109]];
  const PIPS = {
    A: [[50, 70]],
    2: COLUMN,
    3: [...COLUMN, [50, 70]],
    4: FOUR,
    5: [...FOUR, [50, 70]],
    6: SIX,
    7: [...SIX, [50, 52]],
    8: [...SIX, [50, 52], [50, 88]],
    9: [...EIGHT, [50, 70]],
    10: [...EIGHT, [50, 44], [50, 96]],
  };
  const gold = (...spots) =>
    spots.map(([x, y, r]) => `<circle cx="${x}" cy="${y}" r="${r}" fill="var(--gold)"/>`).join("");
  const PICTURES = {
    J: `<path d="M28 81c4-20 14-29 26-29 10 0 17 7 18 17l-4 12z"/><path d="M24 81h52v9H24z"/>
        <path d="M66 61c4-14 12-21 20-23-1 10-6 20-17 27z" fill="var(--gold)"/>`,
    Q: `<path d="M26 88l-3-29 13 13 14-23 14 23 13-13-3 29z"/><path d="M26 92h48v7H26z"/>${
      gold([50, 45, 5], [22, 55, 4], [78, 55, 4])
    }`,
    K: `<path d="M25 89V61c8 8 14 5 16-3h18c2 8 8 11 16 3v28z"/><path d="M47 39h6v6h6v6h-6v9h-6v-9h-6v-6h6z"/>
        <path d="M25 93h50v7H25z"/>${gold([36, 80, 4], [50, 77, 5], [64, 80, 4])}`,
    "★": `<path d="M29 86c-3-18-8-27-17-27 4-11 16-11 24-3 3-15 8-22 14-22s11 7 14 22c8-8 20-8 24 3-9 0-14 9-17 27z"/>
        <path d="M29 90h42v7H29z"/>${gold([12, 62, 5], [50, 32, 5], [88, 62, 5])}`,
  };
  const PAPER =
    `<rect x="1" y="1" width="98" height="138" rx="10" fill="var(--card)" stroke="var(--card-line)" stroke-width="1.5"/>`;

  // Returns the suit, or a coin, as in an Italian deck, for cards without one.
  function pip([x, y], radius, suit) {
    const at = `transform="translate(${x} ${y}) scale(${radius / 10})"`;
    if (suit !== "pip") return `<g ${at}><path transform="scale(.95) translate(-12 -12)" d="${ICONS[suit]}"/></g>`;
    return `<g ${at}><circle r="10"/><circle r="7.2" fill="none" stroke="var(--card)" stroke-width="1.3"/>
      <path d="M0-5.2 1.5-1.5 5.2 0 1.5 1.5 0 5.2-1.5 1.5-5.2 0-1.5-1.5z" fill="var(--card)"/></g>`;
  }

  function printed(sign, suit) {
    const radius = sign === "A" ? 26 : Number(sign) > 6 ? 8.5 : 11;
    const middle = PICTURES[sign] ?? PIPS[sign].map((at) => pip(at, radius, suit)).join("");
    const id = `card-sign-${SIGNS.indexOf(sign)}`;
    define(id, `<text class="sign" x="${sign === "10" ? 5 : 8}" y="28" font-size="25">${sign}</text>`);
    const corner = `<use href="#${id}"/>${suit === "pip" ? "" : pip([16, 40], 6.5, suit)}`;
    return `${corner}<g transform="rotate(180 50 70)">${corner}</g>${middle}`;
  }

  function svg(markup, box = "0 0 100 140") { // only for trusted markup
    const holder = document.createElement("template");
    holder.innerHTML = `<svg viewBox="${box}" aria-hidden="true">${markup.replace(/\s*\n\s*/g, "")}</svg>`;
    return holder.content.firstChild;
  }

  // Defines a part that many cards share. Cards then contain no text, which screen readers would read twice.
  function define(id, markup) {
    if (document.getElementById(id)) return;
    const defined = svg(`<defs><g id="${id}">${markup}</g></defs>`);
    defined.classList.add("hidden");
    document.body.append(defined);
  }

  function append(drawn, tag, attributes, text = "") {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    drawn.append(element);
  }

  const outline = (icon) => ICONS[icon] ?? (/^m[\d\s.-]/i.test(icon) ? icon : "");

  // Draws a card with an icon, a word, or both.
  function tool(sign, icon) {
    const drawn = svg(PAPER);
    const path = outline(icon);
    const size = Math.min(path ? 19 : 30, 150 / sign.length);
    if (path) append(drawn, "path", { d: path, transform: `translate(${sign ? "17 24" : "17 37"}) scale(2.75)` });
    if (sign) append(drawn, "text", { x: 50, y: path ? 122 : 77, "text-anchor": "middle", "font-size": size }, sign);
    return drawn;
  }

  function picture(sign, icon) {
    if (icon.startsWith("die")) {
      const rim =
        `<rect x="1" y="1" width="22" height="22" rx="4" fill="var(--card)" stroke="var(--card-line)" stroke-width=".5"/>`;
      return svg(`${rim}<path d="${outline(icon)}"/>`, "0 0 24 24");
    }
    return SIGNS.includes(sign) && SUITS.includes(icon) ? svg(PAPER + printed(sign, icon)) : tool(sign, icon);
  }

  // Draws a card, a die or a tool as the game defines it. Screen readers read its name.
  function face([name, sign, icon], tag = "span") {
    const card = document.createElement(tag);
    const isTag = sign.length > LONGEST_SIGN || !(sign || outline(icon));
    const isRed = icon === "pip" ? SIGNS.indexOf(sign) % 2 : ["hearts", "diamonds"].includes(icon);
    const kind = icon.startsWith("die") ? " die" : isTag ? " tag" : sign === "★" ? " joker" : "";
    card.className = `card${kind}${isRed ? " red" : ""}`;
    card.append(isTag ? sign || name : picture(sign, icon));
    card.setAttribute("aria-label", name);
    if (tag === "span") card.setAttribute("role", "img");
    return card;
  }

  // Draws the back of a card. All backs share one drawing, because a table has dozens.
  function back() {
    let lattice = "";
    for (let row = 0; row < 9; row++) {
      for (let column = 0; column < 6; column++) lattice += `M${15 + column * 14} ${9 + row * 14}l5 5-5 5-5-5z`;
    }
    define(
      "card-back",
      `${PAPER}<rect x="7" y="7" width="86" height="126" rx="6" fill="var(--back)"/>
        <path d="${lattice}" fill="var(--back-line)" opacity=".32"/>
        <circle cx="50" cy="70" r="21" fill="var(--back)" stroke="var(--back-line)" stroke-width="2"/>
        <text class="sign" x="50" y="82" text-anchor="middle" font-size="34" fill="var(--back-line)">?</text>`,
    );
    const card = document.createElement("span");
    card.className = "card back";
    card.append(svg(`<use href="#card-back"/>`));
    card.setAttribute("aria-hidden", "true");
    return card;
  }

  // Arranges cards as a fan. They overlap as much as the width requires.
  function fan(list, cards) {
    list.classList.add("fan");
    list.replaceChildren(...cards.map((card, place) => {
      const item = document.createElement(list.tagName === "UL" ? "li" : "span");
      item.style.setProperty("--at", place - (cards.length - 1) / 2);
      item.append(card);
      return item;
    }));
    list.style.setProperty("--half", Math.max(1, (cards.length - 1) / 2));
  }

  // Replaces the text after the first colon, or all text if there is no colon, with drawn cards.
  function drawnIn(words, faces) {
    if (!faces.length) return [words];
    const lead = words.slice(0, words.indexOf(":") + 1);
    const list = document.createElement("span");
    list.className = faces.length < 4 ? "cards few" : "cards";
    list.append(...faces.map((one) => face(one)));
    return lead ? [`${lead} `, list] : [list];
  }

  return { face, back, fan, drawnIn };
})();
for (const place of document.querySelectorAll("[data-cards]")) {
  place.append(...JSON.parse(place.dataset.cards).map((one) => window.dubitoCards.face(one)));
}
for (const place of document.querySelectorAll("[data-backs]")) {
  place.append(...Array.from({ length: Number(place.dataset.backs) }, window.dubitoCards.back));
}
