// Lists the pairs of things on the felt that cover each other: cards, faces, names, chips, bubbles, tags and stamps.
(() => {
  const SLACK = 4; // pixels; rotated cards have larger boxes than they cover
  const THINGS = ".avatar, .seat .name, .seat .who b, .held, .badge, .bubble, .chips li, .plays > li:not(.latest), " +
    ".card, .stamp, .truth, .round, .boards h2, .boards .hand, .really, .now, .tip, .pace";
  const PART_OF = ".fan, .pile, .cards, .chips li, .plays > li:not(.latest), .really"; // whose parts may touch
  const area = document.querySelector(".room") ?? document.querySelector(".table");
  const isHidden = (box, one) =>
    box.width < 2 || box.height < 2 || !one.checkVisibility({ visibilityProperty: true }) ||
    getComputedStyle(one).clipPath !== "none";
  const boxOf = (one) => { // of the words only, if there are only words
    const range = document.createRange();
    range.selectNodeContents(one);
    return one.matches(".held, .boards .hand, h2") && !one.querySelector(".card")
      ? range.getBoundingClientRect()
      : one.getBoundingClientRect();
  };
  const things = [...area.querySelectorAll(THINGS)].map((one) => ({ one, box: boxOf(one) }))
    .filter(({ one, box }) =>
      !isHidden(box, one) &&
      !one.parentElement.closest(".chips li, .plays > li:not(.latest), .really, .avatar, .tip, .pace, .bubble")
    );
  const label = (one) => `${one.className.baseVal ?? one.className}`.split(" ")[0] || one.tagName;
  const isTogether = (one, other) =>
    one.contains(other) || other.contains(one) ||
    (one.matches("h2") && one.parentElement === other.parentElement) || // a heading in the same line
    (one.closest(PART_OF) && one.closest(PART_OF) === other.closest(PART_OF)) ||
    [[one, other], [other, one]].some((
      [a, b],
    ) => (a.matches(".stamp, .truth") && (b.closest(".pile, .latest, .reveal") ?? false) &&
      b.closest(".pile, .latest, .reveal") === a.closest(".pile, .latest, .reveal"))
    );
  const found = new Map();
  things.forEach(({ one, box }, place) => {
    for (const { one: other, box: its } of things.slice(place + 1)) {
      const wide = Math.min(box.right, its.right) - Math.max(box.left, its.left);
      const high = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
      if (wide <= SLACK || high <= SLACK || isTogether(one, other)) continue;
      const groups = [one, other].map((each) => each.closest(".fan, .pile, .cards") ?? each);
      if (groups[0] === groups[1]) continue;
      const key = things.findIndex((each) => groups[0].contains(each.one)) * 1000 +
        things.findIndex((each) => groups[1].contains(each.one));
      found.set(key, `${label(groups[0])} / ${label(groups[1])}`);
    }
  });
  return [...found.values()];
})();
