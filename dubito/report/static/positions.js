// Draws the hands at positions, and shows only those at which two players chose certain kinds of moves.
"use strict";
(() => {
  for (const hand of document.querySelectorAll("[data-hand]")) {
    window.dubitoCards.fan(hand, JSON.parse(hand.dataset.hand).map((one) => window.dubitoCards.face(one)));
  }
  const filters = document.querySelector(".filters:has([data-kinds])");
  if (!filters) return;
  filters.hidden = false;
  filters.addEventListener("click", ({ target }) => {
    const wanted = target.closest("button")?.dataset.kinds;
    if (wanted === undefined) return;
    for (const button of filters.children) button.setAttribute("aria-pressed", button.dataset.kinds === wanted);
    for (const position of document.querySelectorAll(".position")) {
      position.hidden = wanted && position.dataset.kinds !== wanted;
    }
  });
})();
