package controller;

import java.util.ArrayList;
import java.util.List;

/** What a player of the source project extends. */
public abstract class Player {
    final List<Card> hand = new ArrayList<>();
    int size; // of a hand whose cards this seat does not know; -1: count `hand`

    protected abstract List<Card> requestCards(int card, Controller controller);

    protected abstract boolean bs(Player player, int card, int numberOfCards, Controller controller);

    protected void update(Controller controller) {
    }

    protected void initialize(Controller controller) {
    }

    protected Card[] getHand() {
        return hand.toArray(new Card[0]);
    }

    public int handSize() {
        return size < 0 ? hand.size() : size;
    }

    public String toString() {
        return getClass().getCanonicalName();
    }
}
