#!/bin/sh
# Plays five bots and two stand-ins by one book, hands them in, and makes the site: sh examples/leaderboard/make.sh [FOLDER]
set -e
folder=${1:-leaderboard} games=${GAMES:-100}
mkdir -p "$folder/submissions"
for player in StefaBot ClaudeBot UsualBot AdaptyBoi RandomBoi house:house-sharp@plain house:house-honest@plain; do
    name=$(echo "$player" | tr : -)
    dubito run --bots StefaBot,ClaudeBot,UsualBot --table-sizes 4 --seed 1 --games "$games" --contenders "$player" \
        --no-report --quiet --output "$folder/runs/$name" > /dev/null
    dubito export "$folder/runs/$name" "$folder/submissions/$name.zip"
done
dubito leaderboard "$folder/submissions" --output "$folder/site" --title "Bots and stand-ins"
