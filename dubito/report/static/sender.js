// A shared game starts with a short clip of the round that ends in its best moment. Without motion it starts there.
"use strict";
window.dubitoShared = ({ game, states, show, play }) => {
  const LONGEST_CLIP = 6; // turns

  for (const spot of document.querySelectorAll("[data-face]")) {
    const seat = Number(spot.dataset.face);
    spot.append(window.dubitoAvatar(game.names[seat], game.kinds?.[seat]));
  }

  const copy = document.getElementById("copy");
  copy.addEventListener("click", async () => {
    const line = document.getElementById("line");
    try {
      await navigator.clipboard.writeText(line.textContent);
      copy.textContent = "Copied";
    } catch { // if the browser forbids it, the reader can copy the selected text
      getSelection().selectAllChildren(line);
    }
  });

  if (location.hash || !game.opens || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const laid = states()[game.opens].reduce((sum, panel) => sum + (panel.plays?.length ?? 0), 0);
  show(Math.max(1, game.opens - Math.max(1, laid), game.opens - LONGEST_CLIP));
  play(game.opens);
};
