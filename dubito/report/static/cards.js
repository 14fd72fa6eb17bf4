// Draws cards in reports and at the table. A game defines its suits or icons; Dubito's cards only have numbers.
"use strict";
window.dubitoCards = (() => {
  const dot = (x, y) => `M${x - 2.3} ${y}a2.3 2.3 0 1 0 4.6 0a2.3 2.3 0 1 0-4.6 0z`;
  const die = (...pips) => pips.map((pip) => dot(...{ a: [5.5, 5.5], b: [18.5, 5.5], c: [5.5, 12], d: [12, 12], e: [18.5, 12], f: [5.5, 18.5], g: [18.5, 18.5] }[pip])).join("");
  // Icons by name, as paths in a box of 24 by 24. A game can use these names or its own paths.
  const ICONS = {
    spades: "M12 2C9 6 4 9 4 13.5a3.8 3.8 0 0 0 7 2.1C10.9 18 10 20 8.5 22h7C14 20 13.1 18 13 15.6a3.8 3.8 0 0 0 7-2.1C20 9 15 6 12 2z",
    hearts: "M12 21C6 16 3 12.5 3 8.6A4.6 4.6 0 0 1 12 7a4.6 4.6 0 0 1 9 1.6C21 12.5 18 16 12 21z",
    clubs: "M12 2a4.3 4.3 0 0 0-3.6 6.6A4.3 4.3 0 1 0 11 15.4C10.9 18 10 20 8.5 22h7C14 20 13.1 18 13 15.4a4.3 4.3 0 1 0 2.6-6.8A4.3 4.3 0 0 0 12 2z",
    diamonds: "M12 2l7.5 10L12 22 4.5 12z",
    pip: "M12 7a5 5 0 1 0 .1 0z", // of a card without a suit
    "die-1": die("d"), "die-2": die("a", "g"), "die-3": die("a", "d", "g"), "die-4": die("a", "b", "f", "g"),
    "die-5": die("a", "b", "d", "f", "g"), "die-6": die("a", "b", "c", "e", "f", "g"),
    bomb: "M9.5 8a7 7 0 1 0 .1 0zM13.6 8.2l2-2 2.2 2.2-2 2zM17.6 5.4c.6-1.6 2-2 3.4-1.4l-.6 1.6c-.7-.3-1.1-.1-1.4.5zM20 7l3 1.2-.6 1.4-3-1.2z",
    shield: "M12 2l8 3v6c0 5-3.4 9-8 11-4.6-2-8-6-8-11V5zM11 15.6l6-6L15.5 8 11 12.6l-2-2L7.5 12z",
    eye: "M12 5C6.5 5 3 9 1.5 12 3 15 6.5 19 12 19s9-4 10.5-7C21 9 17.5 5 12 5zM12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 10.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z",
    shuffle: "M2 6h5l6.4 8.4H16V12l6 3.7-6 3.7V17h-3.8L5.8 8.6H2zM2 14.4h3.8l1.8-2.3 1.6 2.1L7 17H2zM10.8 8.9L13 6h3V3.6l6 3.7-6 3.7V8.6h-1.7l-1.9 2.4z",
    skip: "M2 5l8 7-8 7zM10 5l8 7-8 7zM19 5h3v14h-3z",
    bottom: "M10.3 3h3.4v8H18l-6 7-6-7h4.3zM4 19.5h16V22H4z",
    blank: "M12 3a9 9 0 1 0 .1 0zM12 5.6a6.4 6.4 0 1 1-.1 0zM7 9.5h10v5H7zM8.5 11v2h7v-2z",
  };

  function picture(icon) {
    const path = ICONS[icon] ?? (/^m[\d\s.-]/i.test(icon) ? icon : "");
    if (!path) return [];
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawn.setAttribute("viewBox", "0 0 24 24");
    drawn.setAttribute("aria-hidden", "true");
    drawn.append(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    drawn.firstChild.setAttribute("d", path);
    return [drawn];
  }

  // Draws a card, a die or a tool as the game defines it. Screen readers read its name.
  function face([name, sign, icon], tag = "span") {
    const card = document.createElement(tag);
    const shape = icon.startsWith("die") ? " die" : sign.length > 2 || !icon ? " tag" : "";
    card.className = `card${shape}${["hearts", "diamonds"].includes(icon) ? " red" : ""}`;
    card.append(...(shape ? [...picture(icon), sign || (picture(icon).length ? "" : name)] : [sign, ...picture(icon)]));
    card.setAttribute("aria-label", name);
    if (tag === "span") card.setAttribute("role", "img");
    return card;
  }

  // A card with only a number, or a joker.
  function draw(sign, name, tag = "span") {
    const isJoker = sign === "★";
    const card = face([name, sign, isJoker ? "" : "pip"], tag);
    if (isJoker) card.className = "card joker";
    return card;
  }

  // Replace the text after the first colon, or all text if there is no colon, with drawn cards.
  function drawnIn(words, faces) {
    if (!faces.length) return [words];
    const lead = words.slice(0, words.indexOf(":") + 1);
    const list = document.createElement("span");
    list.className = faces.length < 4 ? "cards few" : "cards";
    list.append(...faces.map((one) => face(one)));
    return lead ? [`${lead} `, list] : [list];
  }

  return { draw, face, drawnIn };
})();
