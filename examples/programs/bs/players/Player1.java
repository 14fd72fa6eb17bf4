package players;

import java.util.Arrays;
import java.util.List;

import controller.*;

/** Plays all its cards of the number, or else its first card; accuses plays of three or more cards. */
public class Player1 extends Player {
    @Override
    protected List<Card> requestCards(int card, Controller controller) {
        Card[] hand = getHand();
        List<Card> matching = Arrays.stream(hand).filter(held -> held.getNumber() == card).toList();
        return matching.isEmpty() ? List.of(hand[0]) : matching;
    }

    @Override
    protected boolean bs(Player player, int card, int numberOfCards, Controller controller) {
        return numberOfCards >= 3;
    }
}
