package controller;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Lets a player of the source project play BS as a program: `java -cp out controller.Controller players.Player1`. */
public class Controller {
    /** Another seat: only its hand's size is known. */
    private static class OtherSeat extends Player {
        protected List<Card> requestCards(int card, Controller controller) {
            throw new UnsupportedOperationException("another seat's cards are unknown");
        }

        protected boolean bs(Player player, int card, int numberOfCards, Controller controller) {
            throw new UnsupportedOperationException("another seat's answers are unknown");
        }
    }

    public final Random rnd;
    private final List<Player> players = new ArrayList<>();
    private final Player me;
    private final List<String> events = new ArrayList<>(); // since the last question
    private boolean isDealt = false;
    private int pile = 0;
    private int turns = 0;
    private int played = 0; // number of cards in the last play

    private Controller(String hello, String playerClass) throws Exception {
        rnd = new Random(Long.parseLong(find("\"seed\":(\\d+)", hello)));
        int seat = Integer.parseInt(find("\"seat\":(\\d)", hello));
        me = (Player) Class.forName(playerClass).getDeclaredConstructor().newInstance();
        for (int other = 0; other < 4; other++) {
            players.add(other == seat ? me : new OtherSeat());
            players.get(other).size = other == seat ? -1 : 13;
        }
    }

    public int getDiscardPileSize() {
        return pile;
    }

    public List<Player> getPlayers() {
        return players;
    }

    private static String find(String pattern, String line) {
        Matcher matcher = Pattern.compile(pattern).matcher(line);
        if (!matcher.find()) throw new IllegalStateException("no " + pattern + " in " + line);
        return matcher.group(1);
    }

    private String decide(String question) {
        syncHand(find("\"hand\":\\{([^}]*)\\}", question));
        if (!isDealt) me.initialize(this);
        isDealt = true;
        events.forEach(this::observe);
        events.clear();
        if (question.contains("\"node\":\"bs\"")) {
            return String.valueOf(me.bs(players.get(turns % 4), turns % 13, played, this));
        }
        Set<Card> cards = new LinkedHashSet<>(me.requestCards(turns % 13, this)); // a card named twice counts once
        me.hand.removeAll(cards);
        return cards.toString();
    }

    /** Make the hand equal to {"number":count,...}. New cards come last, in random order, and the first hand too. */
    private void syncHand(String counts) {
        int[] missing = new int[13];
        for (String count : counts.isEmpty() ? new String[0] : counts.split(",")) {
            String[] parts = count.replace("\"", "").split(":");
            missing[Integer.parseInt(parts[0].trim())] = Integer.parseInt(parts[1].trim());
        }
        me.hand.removeIf(card -> missing[card.getNumber()]-- <= 0);
        List<Card> added = new ArrayList<>();
        for (int number = 0; number < 13; number++) {
            for (int copy = 0; copy < missing[number]; copy++) added.add(new Card(number));
        }
        Collections.shuffle(added, rnd);
        me.hand.addAll(added);
    }

    private void observe(String event) {
        if (event.contains("\"event\":\"Play\"")) {
            played = Integer.parseInt(find("\"n_cards\":(\\d+)", event));
            Player mover = players.get(turns % 4);
            if (mover != me) mover.size -= played;
            pile += played;
        } else if (event.contains("\"event\":\"Turn\"")) {
            pile = Integer.parseInt(find("\"pile\":(\\d+)", event));
            String[] sizes = find("\"hands\":\\[([^\\]]*)\\]", event).split(",");
            for (int seat = 0; seat < 4; seat++) {
                if (players.get(seat) != me) players.get(seat).size = Integer.parseInt(sizes[seat].trim());
            }
            if (++turns % 4 == 0) me.update(this);
        }
    }

    public static void main(String[] words) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Controller game = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            switch (find("\"type\":\"(\\w+)\"", line)) {
                case "hello" -> {
                    game = new Controller(line, words[0]);
                    System.out.println("{\"ready\":true,\"resets\":true}");
                }
                case "event" -> game.events.add(line);
                case "decide" -> System.out.println("{\"answer\":" + game.decide(line) + "}");
                default -> { } // `end`: the next game has a new player
            }
            System.out.flush();
        }
    }
}
