"""Listener, a bot for Outsider."""

from games.outsider.game import OutsiderBot, OutsiderView

KNOWN = {
    "tiger": "stripes",
    "penguin": "ice",
    "snail": "slow",
    "horse": "ride",
    "bat": "night",
    "shark": "teeth",
    "pizza": "oven",
    "soup": "spoon",
    "ice cream": "cold",
    "bread": "butter",
    "cheese": "mouse",
    "apple": "tree",
    "beach": "sand",
    "library": "quiet",
    "airport": "luggage",
    "castle": "king",
    "forest": "trees",
    "cinema": "screen",
}


class Listener(OutsiderBot):
    """Says something related to the word, and suspects seats that did not."""

    def hint(self, view: OutsiderView) -> str:
        """Return a related word. The outsider guesses a word of the topic."""
        return f"I think of this: {KNOWN[self.cards or self.rng.choice(view.words)]}."

    def vote(self, view: OutsiderView) -> str:
        """Vote for a seat whose sentence does not fit the word. The outsider votes at random."""
        fits = KNOWN.get(self.cards or "", "")
        odd = [seat for seat in view.others if fits not in view.said[int(seat[5:])]]
        return self.rng.choice(odd or view.others)
