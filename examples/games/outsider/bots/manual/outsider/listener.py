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
    """Says what goes with the word, and suspects whoever did not."""

    def hint(self, view: OutsiderView) -> str:
        """As the outsider, something that fits another word of the topic."""
        return f"I think of this: {KNOWN[self.cards or self.rng.choice(view.words)]}."

    def vote(self, view: OutsiderView) -> str:
        """The outsider votes by lot."""
        fits = KNOWN.get(self.cards or "", "")
        odd = [seat for seat in view.others if fits not in view.said[int(seat[5:])]]
        return self.rng.choice(odd or view.others)
