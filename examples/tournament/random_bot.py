#!/usr/bin/env python3
import random

game, seat = input(), int(input())  # such as kuhn_poker, and 0 or 1
while True:
    observation, *legal = input().split()  # base64 of float32 values; then the actions, if it is your turn
    if observation == "end":  # end of game SCORE
        break
    if legal:
        print(random.choice(legal), flush=True)
