#!/bin/sh
# Play the first legal action.
read -r game
read -r seat
while read -r observation legal; do
    [ "$observation" = end ] && exit 0 # end of game SCORE
    [ -n "$legal" ] && echo "${legal%% *}"
done
