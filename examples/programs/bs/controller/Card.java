package controller;

public class Card {
    private final int number;

    Card(int number) {
        this.number = number;
    }

    public int getNumber() {
        return number;
    }

    public String toString() {
        return String.valueOf(number);
    }
}
